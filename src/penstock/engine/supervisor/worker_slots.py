"""The places of workers: each is filled, kept alive, and filled again when its worker has died.

Jobs under which two workers have died run one at a time in isolation, in a worker of their own: if it dies
too, there is no doubt which job did it, and no other is hurt. That worker is there only while it is needed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from penstock.counting import count
from penstock.engine.supervisor.looks import Looks
from penstock.engine.supervisor.shutdown import Shutdown
from penstock.engine.supervisor.store_trouble import StoreTrouble
from penstock.engine.supervisor.watch import Contact
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
from penstock.errors import PenstockError, StoreError
from penstock.gates.capacity import DrainScope
from penstock.project import Project
from penstock.project.host import host_name
from penstock.store.rows import Admits
from penstock.store.store import Store
from penstock.store.workers import LEASE_S
from penstock.version import __version__

BEAT_S = 3.0
FAST_DEATH_S = 10.0
MAX_RESTART_DELAY_S = 2.0
# One that can't begin is started again after longer and longer.
MAX_UNFIT_DELAY_S = 10.0
ISOLATION_IDLE_S = 2.0
# How many runs are performed by releases at a time, each by a process of its own.
MOST_BY_RELEASES = 2


@dataclass(slots=True)
class Slot:
    """A place for one worker; a dead one is followed by another."""

    admits: Admits
    child: WorkerChild | None = None
    needed_at: float = float("-inf")
    fast_deaths: int = 0
    # Its last worker could not begin, and has said why.
    is_unfit: bool = False
    start_at: float = float("-inf")
    # Where its worker performs a run by a release: what it may claim, and the release.
    scope: DrainScope | None = None
    release: str | None = None
    is_over: bool = False


class WorkerSlots:
    """All workers of one supervisor."""

    def __init__(
        self,
        project: Project,
        store: Store,
        calls: InOneThread,
        contact: Contact,
        shutdown: Shutdown,
        trouble: StoreTrouble,
        tell: Callable[[str], None],
        workers: int = 1,
        scope: DrainScope | None = None,
    ) -> None:
        self._project = project
        self._store = store
        self._calls = calls
        self._looks = Looks(calls, store)
        self._contact = contact
        self._shutdown = shutdown
        self._trouble = trouble
        self._tell = tell
        self._scope = scope
        kinds: list[Admits] = ["sound"] * workers
        # Isolation stands beside workers: who has none leaves the suspects to others.
        self.slots = [Slot(admits) for admits in ([*kinds, "suspect"] if kinds else [])]
        self._ghosts: list[WorkerChild] = []
        self._has_worked = False
        self._rng = random.SystemRandom()
        # Why nobody can work, if that is so.
        self.failure: PenstockError | None = None

    def children(self) -> Iterator[WorkerChild]:
        return (slot.child for slot in self.slots if slot.child is not None)

    def drain_all(self) -> None:
        for child in self.children():
            child.drain()

    def kill_stuck(self) -> None:
        """End who outlasts the time of a step."""
        for child in self.children():
            if not child.has_ended and (why := child.stuck(self._now())):
                child.kill(why)

    def kill_all(self) -> None:
        for child in self.children():
            child.kill()

    async def end_all(self) -> None:
        """Whoever is left is ended by us, so none of its jobs is to blame."""
        for child in [*self.children(), *self._ghosts]:
            await child.end()
            if self._contact.is_there:
                with suppress(PenstockError):
                    await self._calls(partial(self._store.workers.sign_off, child.name))

    async def beat_all(self) -> None:
        """Renew the leases of the living, all in one go."""
        asked_at = self._now()
        slots = [
            (slot, slot.child)
            for slot in self.slots
            if slot.child and asked_at - slot.child.beaten_at >= BEAT_S and is_alive(slot.child)
        ]
        if not slots:
            return
        names = [child.name for _, child in slots]
        kept = await self._looks(lambda: [self._store.workers.beat(name) for name in names])
        for (slot, child), is_registered in zip(slots, kept, strict=True):
            if is_registered:
                child.beat(asked_at)
            elif not child.is_leaving:  # who was asked to leave has signed off, and ends by itself
                await self._replace(slot, child, "was reaped")

    async def look_for_suspects(self) -> None:
        """Isolation is needed while a suspect is queued or in it."""
        isolation = next((slot for slot in self.slots if slot.admits == "suspect"), None)
        if isolation is None:
            return
        name = isolation.child.name if isolation.child else ""
        if await self._looks(lambda: self._has_suspects(name)):
            isolation.needed_at = self._now()

    def _has_suspects(self, worker: str) -> bool:
        scope = self._scope
        has_any = bool(worker and self._store.workers.jobs_of(worker))
        return has_any or self._store.jobs.has_suspects(None if scope is None else scope.run_id)

    def perform_by_releases(self, wanted: Mapping[int, str]) -> None:
        """Have a worker for each of these runs, with the files of its release, and none for any other."""
        known = {slot.scope.run_id: slot for slot in self.slots if slot.scope is not None}
        for run_id, slot in known.items():
            slot.is_over = run_id not in wanted
        for run_id, release in wanted.items():
            if run_id not in known and len(known) < MOST_BY_RELEASES:
                known[run_id] = Slot("all", scope=DrainScope(run_id), release=release)
                self.slots.append(known[run_id])
        self.slots[:] = [slot for slot in self.slots if not (slot.is_over and slot.child is None)]

    async def tend(self, slot: Slot) -> None:
        """See that there is a worker if one is needed, and none otherwise."""
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
        elif not _is_needed(slot, now):
            child.drain()
            slot.needed_at = now

    def _may_start(self, slot: Slot, now: float) -> bool:
        is_welcome = not self._shutdown.is_leaving and self._contact.is_there
        return is_welcome and now >= slot.start_at and _is_needed(slot, now)

    async def _start(self, slot: Slot) -> None:
        name, settings = f"{self._rng.getrandbits(48):012x}", self._project.settings
        # What its predecessor could not begin for is said once a minute, not at every try.
        tell = self._trouble.say if slot.is_unfit else self._tell
        scope = slot.scope or self._scope
        about_it = (settings, name, slot.admits, tell, self._now(), scope, slot.release)
        child = await WorkerChild.start(*about_it)
        slot.child = child
        about = (host_name(), child.process.pid, __version__, settings.worker.slots)
        asked_at = self._now()
        try:
            await self._calls(
                lambda: self._store.workers.register(name, *about, slot.admits, scope)
            )
        except StoreError:
            # It waits for a beat that can't come; the next one is started when the store is well.
            child.kill()
            raise
        child.beat(asked_at)
        if self._shutdown.is_leaving:
            child.drain()

    async def _replace(self, slot: Slot, child: WorkerChild, why: str) -> None:
        """Give a worker's jobs and place to another; it finds out by itself when it wakes."""
        try:
            jobs = await self._calls(lambda: self._store.workers.bury(child.name, why))
        except StoreError:
            # It may have been stopped in the middle of a write, which nobody else can end.
            child.kill()
            raise
        self._ghosts.append(child)
        slot.child = None
        self._tell(f"worker {child.name} {why}: {count(len(jobs), 'job')} to run again")

    async def _follow(self, slot: Slot, child: WorkerChild) -> None:
        """A worker has ended: take back what it left, and make room for the next."""
        code, now = child.exit_code, self._now()
        try:
            await self.take_back(child)
        except StoreError:
            if not self._shutdown.is_leaving:
                raise
            self._tell(f"worker {child.name} could not be signed off; its lease will expire")
        slot.child = None
        await child.last_words()
        # What was fit once is waited for: a file that is being edited, a login that is refused.
        is_ours = slot.release is None
        if code == EXIT_BROKEN or (code == EXIT_UNFIT and is_ours and not self._has_worked):
            self.failure = StoreError("a worker could not work", "its message is above")
        is_fast = code != 0 and now - child.started_at < FAST_DEATH_S
        slot.fast_deaths = slot.fast_deaths + 1 if is_fast else 0
        longest_s = MAX_UNFIT_DELAY_S if code == EXIT_UNFIT else MAX_RESTART_DELAY_S
        slot.is_unfit = code == EXIT_UNFIT
        slot.start_at = now + min(longest_s, 0.05 * 2 ** min(slot.fast_deaths, 10))

    async def take_back(self, child: WorkerChild) -> None:
        """A death counts against the jobs; a worker that left in good order owes nothing for them."""
        code, store = child.exit_code, self._store
        if (self._shutdown.is_leaving and code != EXIT_BROKEN) or code == EXIT_UNFIT:
            await self._calls(lambda: store.workers.sign_off(child.name))
            return
        # One that heard of no beat for so long has stopped its attempts and itself, as it must: whether the
        # store was silent or this process was stopped, its jobs are not to blame.
        if code in (EXIT_BURIED, EXIT_LOST) and child.has_heard_nothing(self._now()):
            why = "lost contact with the store and stopped"
            jobs = await self._calls(lambda: store.workers.sign_off(child.name, why))
        else:
            why = child.ended_why or how_it_ended(code)
            jobs = await self._calls(lambda: store.workers.bury(child.name, why))
        if jobs or code not in (EXIT_DRAINED, EXIT_RECYCLE):
            self._tell(f"worker {child.name} {why}: {count(len(jobs), 'job')} to run again")

    def _now(self) -> float:
        return self._project.clock.monotonic()


def _is_needed(slot: Slot, now: float) -> bool:
    if slot.release is not None:
        return not slot.is_over
    return slot.admits == "sound" or now - slot.needed_at < ISOLATION_IDLE_S


def is_alive(child: WorkerChild) -> bool:
    return not child.has_ended and not child.is_stopped()
