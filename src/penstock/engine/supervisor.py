"""The supervisor: owns worker processes, keeps their leases, buries them when they die.

Liveness is the supervisor's word, not the worker's: it renews the lease while the process lives, so
a step that blocks the interpreter does not lose its job, and it buries the worker the moment the
process is gone. A worker that was stopped (SIGSTOP) is not renewed, loses its lease, and finds out
when it wakes.

Jobs under which two workers have died run one at a time in a ward, a worker of their own: if it dies
too, there is no doubt which job did it, and no other is hurt. The ward is closed while it is empty.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.engine.lock import ProjectLock
from penstock.engine.scheduler import Scheduler
from penstock.engine.sweep import Sweep
from penstock.engine.upkeep import Upkeep
from penstock.engine.worker_process import EXIT_BROKEN
from penstock.errors import PenstockError, StoreCorrupt, StoreError
from penstock.project import Project
from penstock.settings import redact
from penstock.snapshots import open_snapshots
from penstock.store.store import Admits
from penstock.store.workers import LEASE_S
from penstock.version import __version__

BEAT_S = 3.0
PULSE_S = 0.05
UPKEEP_S = 1.0
REPEAT_S = 60.0
FAST_DEATH_S = 10.0
MAX_RESTART_DELAY_S = 2.0
KILL_AFTER_S = 5.0
WARD_IDLE_S = 2.0
# A worker that was told to leave and has not left this long after its grace is ended.
OVERTIME_S = 0.4
# What a worker said last is waited for this long: a process that a step has started may keep the pipe open.
LAST_WORDS_S = 0.5


@dataclass(slots=True)
class _Child:
    name: str
    process: asyncio.subprocess.Process
    started_at: float
    output: asyncio.Task[None]
    beaten_at: float = 0.0


@dataclass(slots=True)
class _Slot:
    """A place for one worker; a dead one is followed by another."""

    admits: Admits
    child: _Child | None = None
    needed_at: float = 0.0
    fast_deaths: int = 0
    start_at: float = 0.0


@dataclass(slots=True)
class Supervisor:
    """Runs a project's workers until told to stop or until `until` says that the work is done."""

    project: Project
    tell: Callable[[str], None]
    until: Callable[[], bool] = lambda: False
    has_scheduler: bool = False
    workers: int = 1
    _slots: list[_Slot] = field(default_factory=list)
    _ghosts: list[_Child] = field(default_factory=list)
    _stops: int = 0
    _kill_at: float = float("inf")
    _is_done: bool = False
    _failure: PenstockError | None = None
    _upkeep_at: float = 0.0
    _said: dict[str, float] = field(default_factory=dict)
    _rng: random.Random = field(default_factory=random.SystemRandom)

    def __post_init__(self) -> None:
        self.tell = unfailing(self.tell)

    async def run(self) -> bool:
        """Work; True if it ended by itself, False if it was told to stop."""
        lock = ProjectLock(self.project.settings.store_file)
        try:
            self._begin()
            await self._loop()
        finally:
            await self._end()
            lock.release()
        if self._failure is not None:
            raise self._failure
        return not self._stops

    def stop(self) -> None:
        """Drain; asked again, stop at once."""
        self._stops += 1
        grace_s = self.project.settings.worker.grace_s if self._stops == 1 else 0.0
        self._kill_at = self.project.clock.monotonic() + grace_s + OVERTIME_S
        self._drain_all()

    def _begin(self) -> None:
        store = self.project.store
        store.quick_check()
        store.reserve.hold()
        # We hold the lock, so whoever is registered is dead: nobody has to wait for a lease to end.
        for worker in store.workers():
            jobs = store.bury(worker.id, "it was gone when Penstock started")
            self.tell(f"worker {worker.id} had died: {len(jobs)} jobs run again")
        self._slots = [*(_Slot("sound") for _ in range(self.workers)), _Slot("suspect")]
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)

    async def _loop(self) -> None:
        project = self.project
        snapshots = open_snapshots(project.settings.snapshots, f"upkeep-{os.getpid()}")
        snapshots.check()
        sweep = Sweep(snapshots, project.open_store, project.clock)
        upkeep = Upkeep(project.store, project.settings.retention, sweep, project.clock)
        scheduler = Scheduler(project, project.store) if self.has_scheduler else None
        if scheduler is not None:
            scheduler.plan()
        try:
            while not self._is_over():
                try:
                    for slot in self._slots:
                        await self._tend(slot)
                    self._look_around(scheduler, upkeep)
                except StoreCorrupt:
                    raise
                except StoreError as error:
                    self._say(error.message)
                await asyncio.sleep(PULSE_S)
        finally:
            sweep.close()
            snapshots.close()

    def _look_around(self, scheduler: Scheduler | None, upkeep: Upkeep) -> None:
        now = self.project.clock.monotonic()
        if now >= self._upkeep_at:
            if scheduler is not None:
                scheduler.tick()
            upkeep.bury_expired(self.tell, self._is_alive)
            self._upkeep_at = now if upkeep.do_a_little() else now + UPKEEP_S
        if not self._stops and not self._is_done and self.until():
            self._is_done = True
            self._drain_all()

    def _say(self, text: str) -> None:
        """The same trouble once a minute, however often it is met."""
        now = self.project.clock.monotonic()
        if now - self._said.get(text, -REPEAT_S) >= REPEAT_S:
            self._said[text] = now
            self.tell(text)

    def _is_over(self) -> bool:
        if self._failure is not None:
            return True
        return self._is_leaving and all(slot.child is None for slot in self._slots)

    @property
    def _is_leaving(self) -> bool:
        return self._stops > 0 or self._is_done

    def _drain_all(self) -> None:
        for slot in self._slots:
            self._send(slot.child, b"drain")

    # One worker.

    async def _tend(self, slot: _Slot) -> None:
        now = self.project.clock.monotonic()
        child = slot.child
        if child is None:
            if not self._is_leaving and now >= slot.start_at and self._is_needed(slot, now):
                await self._start(slot)
        elif child.process.returncode is not None:
            await self._follow(slot, child)
        elif now >= self._kill_at:
            child.process.kill()
            await child.process.wait()
        elif is_stopped(child.process.pid):
            if now - child.beaten_at >= LEASE_S:
                self._replace(slot, child, "was stopped for longer than its lease")
        elif now - child.beaten_at >= BEAT_S and not self._beat(child):
            self._replace(slot, child, "was buried")
        elif not self._is_needed(slot, now):
            self._send(child, b"drain")
            slot.needed_at = now

    def _is_needed(self, slot: _Slot, now: float) -> bool:
        """A worker always; the ward while a suspect is queued or in it, and a little longer."""
        store = self.project.store
        if slot.admits == "sound":
            return True
        has_patient = slot.child is not None and bool(store.jobs_of(slot.child.name))
        if has_patient or store.has_suspects():
            slot.needed_at = now
        return now - slot.needed_at < WARD_IDLE_S

    def _replace(self, slot: _Slot, child: _Child, why: str) -> None:
        """Give a worker's jobs and place to another; it finds out by itself when it wakes."""
        try:
            jobs = self.project.store.bury(child.name, why)
        except StoreError:
            # It may have been stopped in the middle of a write, which nobody else can end.
            child.process.kill()
            raise
        self._ghosts.append(child)
        slot.child = None
        self.tell(f"worker {child.name} {why}: {len(jobs)} jobs run again")

    def _is_alive(self, worker: str) -> bool:
        child = next((s.child for s in self._slots if s.child and s.child.name == worker), None)
        if child is None or child.process.returncode is not None:
            return False
        return not is_stopped(child.process.pid)

    async def _start(self, slot: _Slot) -> None:
        name = f"{self._rng.getrandbits(48):012x}"
        settings = self.project.settings
        command = [
            sys.executable, "-m", "penstock.engine.worker_process",
            "--project", str(settings.root), "--worker", name, "--admits", slot.admits,
        ]  # fmt: skip
        if settings.environment:
            command += ["--env", settings.environment]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        output = asyncio.create_task(self._relay(process.stdout))
        slot.child = _Child(name, process, self.project.clock.monotonic(), output)
        try:
            self.project.store.register(name, socket.gethostname(), process.pid, __version__)
            self._beat(slot.child)
        except StoreError:
            # It waits for a beat that can't come; the next one is started when the store is well.
            process.kill()
            raise
        if self._is_leaving:
            self._send(slot.child, b"drain")

    def _beat(self, child: _Child) -> bool:
        """Renew a worker's lease and tell it so; False if it was buried."""
        if not self.project.store.beat(child.name):
            return False
        child.beaten_at = self.project.clock.monotonic()
        self._send(child, b"beat")
        return True

    async def _relay(self, output: asyncio.StreamReader | None) -> None:
        """What a worker or a step prints, line by line; a line without end is cut."""
        while output is not None and (line := await _line(output)):
            text = line.decode("utf-8", "replace").rstrip("\n")
            self.tell(redact(text, self.project.settings.secrets))

    def _send(self, child: _Child | None, line: bytes) -> None:
        if child is None or child.process.stdin is None or child.process.returncode is not None:
            return
        with suppress(ConnectionError, RuntimeError):
            child.process.stdin.write(line + b"\n")

    async def _follow(self, slot: _Slot, child: _Child) -> None:
        """A worker has ended: take back what it left, and make room for the next."""
        code = child.process.returncode
        has_left = self._is_leaving and code != EXIT_BROKEN
        # One that left in good order owns nothing any more, whatever its exit code looks like.
        if has_left:
            jobs = self.project.store.sign_off(child.name)
        else:
            jobs = self.project.store.bury(child.name, how_it_ended(code))
        slot.child = None
        await asyncio.wait({child.output}, timeout=LAST_WORDS_S)
        child.output.cancel()
        if code == EXIT_BROKEN:
            self._failure = StoreError("a worker could not work", "its message is above")
        elif jobs and not has_left:
            self.tell(f"worker {child.name} {how_it_ended(code)}: {len(jobs)} jobs run again")
        now = self.project.clock.monotonic()
        is_fast = code != 0 and now - child.started_at < FAST_DEATH_S
        slot.fast_deaths = slot.fast_deaths + 1 if is_fast else 0
        slot.start_at = now + min(MAX_RESTART_DELAY_S, 0.05 * 2 ** min(slot.fast_deaths, 10))

    async def _end(self) -> None:
        """Whoever is left is ended by us, so none of its jobs is to blame."""
        left = [slot.child for slot in self._slots if slot.child is not None]
        for child in [*left, *self._ghosts]:
            with suppress(ProcessLookupError):
                child.process.kill()
            with suppress(TimeoutError):
                await asyncio.wait_for(child.process.wait(), KILL_AFTER_S)
            child.output.cancel()
            with suppress(PenstockError):
                self.project.store.sign_off(child.name)


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readuntil()
    except asyncio.IncompleteReadError as rest:
        return rest.partial
    except asyncio.LimitOverrunError as overrun:
        return await stream.read(overrun.consumed)


def unfailing(tell: Callable[[str], None]) -> Callable[[str], None]:
    """A log on a full disk, or a terminal that is gone, must not stop the work."""

    def try_to_tell(text: str) -> None:
        with suppress(OSError):
            tell(text)

    return try_to_tell


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal; where that can't be seen, it is taken to be running."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("T", "t")


def how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
        return f"was killed by signal {-code}"
    return f"ended with code {code}"
