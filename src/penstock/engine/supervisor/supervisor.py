"""The supervisor: owns worker processes, keeps their leases, buries them when they die.

Liveness is the supervisor's word, not the worker's: it renews the lease while the process lives, so
a step that blocks the interpreter does not lose its job, and it buries the worker the moment the
process is gone. A worker that was stopped (SIGSTOP) is not renewed, loses its lease, and finds out
when it wakes.

Jobs under which two workers have died run one at a time in a ward, a worker of their own: if it dies
too, there is no doubt which job did it, and no other is hurt. The ward is closed while it is empty.

A SQLite file has one supervisor; a shared store has as many as there are hosts, or more. The store is
asked in a thread, and may take its time or be away: signals, output and processes are looked after
meanwhile, and work goes on when it is back.
"""

from __future__ import annotations

import asyncio
import random
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from penstock.counting import count
from penstock.engine.leader.activity import Activity
from penstock.engine.leader.hooks import Hooks
from penstock.engine.leader.leader_loop import LeaderLoop, a_holder
from penstock.engine.supervisor.lock import locked
from penstock.engine.supervisor.reloading import CodeWatch, trouble_with
from penstock.engine.supervisor.watch import PATIENCE_S, Watch
from penstock.engine.supervisor.worker_child import WorkerChild, how_it_ended
from penstock.engine.worker.calls import InOneThread
from penstock.engine.worker.exits import (
    EXIT_BROKEN,
    EXIT_BURIED,
    EXIT_DRAINED,
    EXIT_LOST,
    EXIT_RECYCLE,
    EXIT_UNFIT,
)
from penstock.engine.worker.store_backoff import REPEAT_S
from penstock.errors import PenstockError, StoreCorrupt, StoreError, StoreUnreachable
from penstock.project import Project
from penstock.project.host import host_name
from penstock.project.stale_code import named
from penstock.snapshots import open_snapshots
from penstock.store.rows import Admits
from penstock.store.store import Store
from penstock.store.workers import LEASE_S, last_beat
from penstock.version import __version__

BEAT_S = 3.0
PULSE_S = 0.05
LOOK_S = 1.0
# How often the ward and the end of the work are looked for: a file is asked sooner than a server.
GLANCE_S = 0.1
SHARED_GLANCE_S = 0.5
# After trouble with the store it is left alone for so long; at the start for longer and longer.
RETRY_S = 1.0
LONGEST_WAIT_S = 10.0
AWAY = "away"
FAST_DEATH_S = 10.0
MAX_RESTART_DELAY_S = 2.0
WARD_IDLE_S = 2.0
# A worker that was told to leave and has not left this long after its grace is ended.
OVERTIME_S = 0.4
# And a store that does not answer this long after that is not waited for: leases end by themselves.
GIVE_UP_S = 5.0


@dataclass(slots=True)
class _Slot:
    """A place for one worker; a dead one is followed by another."""

    admits: Admits
    child: WorkerChild | None = None
    needed_at: float = float("-inf")
    fast_deaths: int = 0
    # Its last worker could not begin, and has said why.
    is_unfit: bool = False
    start_at: float = float("-inf")


@dataclass(slots=True)
class Supervisor:
    """Runs a project's workers until told to stop or until `until` says that the work is done.

    `until` is called in a thread of its own, and may ask the project's store.
    """

    project: Project
    tell: Callable[[str], None]
    until: Callable[[], bool] = lambda: False
    has_scheduler: bool = False
    workers: int = 1
    # Load changed code by starting again; `wants_reload` says that this is due.
    reloads: bool = False
    wants_reload: bool = False
    activity: Activity | None = None
    # Set by a program that wants it to stop, from whatever thread.
    stopping: threading.Event | None = None
    _store: Store = field(init=False)
    _stores: list[Store] = field(default_factory=list)
    _watch: Watch = field(init=False)
    _calls: InOneThread = field(default_factory=lambda: InOneThread("supervisor"))
    _slots: list[_Slot] = field(default_factory=list)
    _ghosts: list[WorkerChild] = field(default_factory=list)
    _leaving: asyncio.Event = field(default_factory=asyncio.Event)
    _stops: int = 0
    _has_worked: bool = False
    _kill_at: float = float("inf")
    _is_done: bool = False
    _is_settled: bool = True
    _failure: PenstockError | None = None
    _code: CodeWatch | None = None
    _checking: asyncio.Task[None] | None = None
    _ask_at: float = float("-inf")
    _due: dict[str, float] = field(default_factory=dict)
    _said: dict[str, float] = field(default_factory=dict)
    _rng: random.Random = field(default_factory=random.SystemRandom)

    def __post_init__(self) -> None:
        self.tell = unfailing(self.tell)

    async def run(self) -> bool:
        """Work; True if it ended by itself, False if it was told to stop."""
        with locked(self.project.settings):
            loop = asyncio.get_running_loop()
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.add_signal_handler(number, self.stop)
            try:
                if await self._reach_store():
                    await self._work()
            finally:
                self._calls.close()
        if self._failure is not None:
            raise self._failure
        return not self._stops

    def stop(self) -> None:
        """Drain; asked again, stop at once."""
        self._stops += 1
        self._leaving.set()
        grace_s = self.project.settings.worker.grace_s if self._stops == 1 else 0.0
        self._kill_at = self._now() + grace_s + OVERTIME_S
        self._drain_all()

    # Beginning and end.

    async def _reach_store(self) -> bool:
        """Open the store, and wait for it if need be: a host may be up before its database is."""
        wait_s = RETRY_S / 2
        while not self._stops:
            try:
                await self._calls(self._open)
                return True
            except StoreUnreachable as error:
                self._say(f"{error.message}; waiting for it", AWAY)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), wait_s)
            wait_s = min(LONGEST_WAIT_S, 2 * wait_s)
        return False

    def _open(self) -> None:
        project = self.project
        snapshots = open_snapshots(project.settings.snapshots, "check")
        snapshots.check()
        snapshots.close()
        self._store = store = project.open_store()
        self._stores.append(store)
        try:
            store.quick_check()
            store.reserve.hold()
            if not store.is_shared:
                self._bury_former()
                Hooks(project, store).plan()  # before the first run can end
        except BaseException:
            store.close()
            raise
        self._watch = Watch(store, project.clock)

    def _bury_former(self) -> None:
        """We hold the file's lock, so whoever is registered is dead: nobody waits for a lease to end."""
        for worker in self._store.workers():
            died_at = last_beat(worker.lease_expires_at)
            jobs = self._store.bury(worker.id, "it was gone when Penstock started", died_at)
            self.tell(f"worker {worker.id} had died: {count(len(jobs), 'job')} to run again")
        for leader in self._store.leaders():
            self._store.resign(leader.name, leader.holder, leader.term)

    async def _work(self) -> None:
        kinds: list[Admits] = ["sound"] * self.workers
        # The ward stands beside workers: one that has none leaves the suspects to others.
        self._slots = [_Slot(admits) for admits in ([*kinds, "suspect"] if kinds else [])]
        beside = [asyncio.create_task(self._end_the_slow())]
        self._is_settled = not self.has_scheduler
        if self.has_scheduler or not self._store.is_shared:
            beside.append(asyncio.create_task(self._keep_time()))
        try:
            while not self._is_over():
                if self.stopping is not None and self.stopping.is_set() and not self._stops:
                    self.stop()
                for task in beside:
                    if task.done():
                        task.result()
                await self._pulse()
                await asyncio.sleep(PULSE_S)
        finally:
            self._is_done = True
            self._leaving.set()
            if self._checking is not None:
                self._checking.cancel()
            await self._end_children()
            await _ended(beside)
            await self._calls(self._store.close)

    async def _end_children(self) -> None:
        """Whoever is left is ended by us, so none of its jobs is to blame."""
        left = [slot.child for slot in self._slots if slot.child is not None]
        for child in [*left, *self._ghosts]:
            await child.end()
            if self._watch.contact.is_there:
                with suppress(PenstockError):
                    await self._calls(partial(self._store.sign_off, child.name))

    # Beside the work.

    async def _end_the_slow(self) -> None:
        """Whatever the store is doing, who outlasts its grace or the time of a step is ended in time."""
        while True:
            for child in self._children():
                if not child.has_ended and (why := child.stuck(self._now())):
                    child.kill(why)
            if self._now() >= self._kill_at:
                for child in self._children():
                    child.kill()
            if self._now() >= self._kill_at + GIVE_UP_S:
                for store in self._stores:
                    store.give_up()
                return
            await asyncio.sleep(PULSE_S)

    async def _keep_time(self) -> None:
        """Schedules and upkeep, with a connection and a thread of their own."""
        calls = InOneThread("leader")
        leader_loop: LeaderLoop | None = None
        try:
            while not self._is_leaving:
                has_more, rest_s = False, LOOK_S
                try:
                    if leader_loop is None:
                        leader_loop = await calls(self._make_leader_loop)
                    has_more = await calls(leader_loop.look)
                    rest_s, self._is_settled = leader_loop.rest_s, leader_loop.is_settled
                except StoreError as error:
                    self._meet(error)
                if not has_more:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._leaving.wait(), rest_s)
        finally:
            if leader_loop is not None:
                with suppress(StoreError):
                    await calls(leader_loop.tell)
                await calls(leader_loop.close)
            calls.close()

    def _make_leader_loop(self) -> LeaderLoop:
        store = self.project.open_store()
        self._stores.append(store)
        return LeaderLoop(
            self.project,
            store,
            a_holder(),
            has_scheduler=self.has_scheduler,
            activity=self.activity,
        )

    # The loop.

    async def _pulse(self) -> None:
        for chore in (
            self._beat_all,
            self._look_around,
            self._look_at_ward,
            self._look_at_code,
            self._ask_if_done,
        ):
            await self._try(chore)
        for slot in self._slots:
            await self._try(partial(self._tend, slot))

    async def _try(self, chore: Callable[[], Awaitable[None]]) -> None:
        if self._now() < self._ask_at:
            return
        try:
            await chore()
        except StoreError as error:
            self._meet(error)
            self._ask_at = self._now() + RETRY_S

    def _meet(self, error: StoreError) -> None:
        """Trouble with the store is waited for, unless waiting would make it worse."""
        if isinstance(error, StoreCorrupt):
            raise error
        # A server that is away is that, in whichever words its driver says so.
        is_away = isinstance(error, StoreUnreachable)
        self._say(error.message, AWAY if is_away else error.message)

    def _say(self, text: str, matter: str) -> None:
        """The same trouble once a minute, however often it is met."""
        if self._now() - self._said.get(matter, -REPEAT_S) >= REPEAT_S:
            self._said[matter] = self._now()
            self.tell(text)

    def _say_again(self, text: str) -> None:
        self._say(text, text)

    def _is_due(self, what: str, every_s: float) -> bool:
        now = self._now()
        if now < self._due.get(what, now):
            return False
        self._due[what] = now + every_s
        return True

    @property
    def _glance_s(self) -> float:
        return SHARED_GLANCE_S if self._store.is_shared else GLANCE_S

    def _is_over(self) -> bool:
        return self._failure is not None or (self._is_leaving and not any(self._children()))

    @property
    def _is_leaving(self) -> bool:
        return self._stops > 0 or self._is_done

    def _children(self) -> Iterator[WorkerChild]:
        return (slot.child for slot in self._slots if slot.child is not None)

    def _drain_all(self) -> None:
        for child in self._children():
            child.drain()

    def _now(self) -> float:
        return self.project.clock.monotonic()

    # Chores.

    async def _beat_all(self) -> None:
        """Renew the leases of the living, all in one go."""
        asked_at = self._now()
        slots = [
            (slot, slot.child)
            for slot in self._slots
            if slot.child and asked_at - slot.child.beaten_at >= BEAT_S and _is_alive(slot.child)
        ]
        if not slots:
            return
        names = [child.name for _, child in slots]
        kept = await self._calls(lambda: self._renew(names))
        for (slot, child), is_registered in zip(slots, kept, strict=True):
            if is_registered:
                child.beat(asked_at)
            elif not child.is_leaving:  # who was asked to leave has signed off, and ends by itself
                await self._replace(slot, child, "was reaped")

    def _renew(self, workers: list[str]) -> list[bool]:
        with self._store.hurried(PATIENCE_S):
            return [self._store.beat(worker) for worker in workers]

    async def _look_around(self) -> None:
        if self._is_leaving or not self._is_due("look", LOOK_S):
            return
        # Whatever became of ours is for `_tend` to see: who slept itself must not take them for lost.
        ours = {child.name for child in self._children()}
        alive = {child.name for child in self._children() if _is_alive(child)}
        for worker, jobs in await self._calls(lambda: self._watch.look(alive, ours)):
            self.tell(
                f"worker {worker} stopped sending heartbeats: {count(jobs, 'job')} to run again"
            )

    async def _look_at_ward(self) -> None:
        """The ward is needed while a suspect is queued or in it."""
        ward = next((slot for slot in self._slots if slot.admits == "suspect"), None)
        if ward is None or self._is_leaving or not self._is_due("ward", self._glance_s):
            return
        name = ward.child.name if ward.child else ""
        if await self._calls(lambda: self._has_patients(name)):
            ward.needed_at = self._now()

    def _has_patients(self, ward: str) -> bool:
        with self._store.hurried(PATIENCE_S):
            return bool(ward and self._store.jobs_of(ward)) or self._store.has_suspects()

    async def _look_at_code(self) -> None:
        """Say that files have changed since they were loaded, or load them anew once they are sound."""
        is_checking = self._checking is not None and not self._checking.done()
        if self._is_leaving or is_checking or not self._is_due("code", LOOK_S):
            return
        if self._code is None:
            self._code = CodeWatch(self.project)
        files = self._code.news()
        if not files:
            return
        what = named(files)
        if not self.reloads:
            self.tell(
                f"{what} changed: workers keep using the old code; restart penstock up, or use --reload"
            )
            return
        self._checking = asyncio.create_task(self._reload(what))

    async def _reload(self, what: str) -> None:
        """Beside the loop: leases are renewed meanwhile."""
        trouble = await trouble_with(self.project.settings)
        if self._is_leaving:
            return
        if trouble:
            self.tell(
                f"{what} changed, but can't be loaded; workers keep using the old code: {trouble}"
            )
            return
        self.tell(f"{what} changed: finishing running work, then loading the new code")
        self.wants_reload = self._is_done = True
        self._kill_at = self._now() + self.project.settings.worker.grace_s + OVERTIME_S
        self._leaving.set()
        self._drain_all()

    async def _ask_if_done(self) -> None:
        if self._is_leaving or not self._is_due("until", self._glance_s):
            return
        if self._is_settled and await self._calls(self.until):
            # A file that was taken away is idle, too.
            await self._calls(self._store.refuse_if_replaced)
            self._is_done = True
            self._leaving.set()
            self._drain_all()

    # One worker.

    async def _tend(self, slot: _Slot) -> None:
        now, child = self._now(), slot.child
        self._has_worked = self._has_worked or (child is not None and child.has_begun)
        if child is None:
            if self._may_start(slot, now):
                await self._start(slot)
        elif child.has_ended:
            await self._follow(slot, child)
        elif child.is_stopped():
            if now - child.beaten_at >= LEASE_S:
                await self._replace(slot, child, "was stopped for longer than its lease")
        elif not self._is_needed(slot, now):
            child.drain()
            slot.needed_at = now

    def _may_start(self, slot: _Slot, now: float) -> bool:
        is_welcome = not self._is_leaving and self._watch.contact.is_there
        return is_welcome and now >= slot.start_at and self._is_needed(slot, now)

    def _is_needed(self, slot: _Slot, now: float) -> bool:
        return slot.admits == "sound" or now - slot.needed_at < WARD_IDLE_S

    async def _start(self, slot: _Slot) -> None:
        name, settings = f"{self._rng.getrandbits(48):012x}", self.project.settings
        # What its predecessor could not begin for is said once a minute, not at every try.
        tell = self._say_again if slot.is_unfit else self.tell
        child = await WorkerChild.start(settings, name, slot.admits, tell, self._now())
        slot.child = child
        about = (host_name(), child.process.pid, __version__, settings.worker.slots)
        asked_at = self._now()
        try:
            await self._calls(lambda: self._store.register(name, *about, slot.admits))
        except StoreError:
            # It waits for a beat that can't come; the next one is started when the store is well.
            child.kill()
            raise
        child.beat(asked_at)
        if self._is_leaving:
            child.drain()

    async def _replace(self, slot: _Slot, child: WorkerChild, why: str) -> None:
        """Give a worker's jobs and place to another; it finds out by itself when it wakes."""
        try:
            jobs = await self._calls(lambda: self._store.bury(child.name, why))
        except StoreError:
            # It may have been stopped in the middle of a write, which nobody else can end.
            child.kill()
            raise
        self._ghosts.append(child)
        slot.child = None
        self.tell(f"worker {child.name} {why}: {count(len(jobs), 'job')} to run again")

    async def _follow(self, slot: _Slot, child: WorkerChild) -> None:
        """A worker has ended: take back what it left, and make room for the next."""
        code, now = child.exit_code, self._now()
        try:
            await self._take_back(child)
        except StoreError:
            if not self._is_leaving:
                raise
            self.tell(f"worker {child.name} could not be signed off; its lease will expire")
        slot.child = None
        await child.last_words()
        # What was fit once is waited for: a file that is being edited, a login that is refused.
        if code == EXIT_BROKEN or (code == EXIT_UNFIT and not self._has_worked):
            self._failure = StoreError("a worker could not work", "its message is above")
        is_fast = code != 0 and now - child.started_at < FAST_DEATH_S
        slot.fast_deaths = slot.fast_deaths + 1 if is_fast else 0
        longest_s = LONGEST_WAIT_S if code == EXIT_UNFIT else MAX_RESTART_DELAY_S
        slot.is_unfit = code == EXIT_UNFIT
        slot.start_at = now + min(longest_s, 0.05 * 2 ** min(slot.fast_deaths, 10))

    async def _take_back(self, child: WorkerChild) -> None:
        """A death counts against the jobs; a worker that left in good order owes nothing for them."""
        code, store = child.exit_code, self._store
        if (self._is_leaving and code != EXIT_BROKEN) or code == EXIT_UNFIT:
            await self._calls(lambda: store.sign_off(child.name))
            return
        # One that heard of no beat for so long has stopped its attempts and itself, as it must: whether the
        # store was silent or this process was stopped, its jobs are not to blame.
        if code in (EXIT_BURIED, EXIT_LOST) and child.has_heard_nothing(self._now()):
            why = "lost contact with the store and stopped"
            jobs = await self._calls(lambda: store.sign_off(child.name, why))
        else:
            why = child.ended_why or how_it_ended(code)
            jobs = await self._calls(lambda: store.bury(child.name, why))
        if jobs or code not in (EXIT_DRAINED, EXIT_RECYCLE):
            self.tell(f"worker {child.name} {why}: {count(len(jobs), 'job')} to run again")


def _is_alive(child: WorkerChild) -> bool:
    return not child.has_ended and not child.is_stopped()


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    """The tasks beside the loop, over: each may end what it is doing, and its trouble is not news now."""
    slow, *others = tasks
    await asyncio.gather(*others, return_exceptions=True)
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


def unfailing(tell: Callable[[str], None]) -> Callable[[str], None]:
    """A log on a full disk, or a terminal that is gone, must not stop the work."""

    def try_to_tell(text: str) -> None:
        with suppress(OSError):
            tell(text)

    return try_to_tell
