"""The supervisor: owns worker processes, keeps their leases, buries them when they die.

Liveness is the supervisor's word, not the worker's: it renews the lease while the process lives, so
a step that blocks the interpreter does not lose its job, and it buries the worker the moment the
process is gone. A worker that was stopped (SIGSTOP) is not renewed, loses its lease, and finds out
when it wakes.

A SQLite file has one supervisor; a shared store has as many as there are hosts, or more. The store is
asked in a thread, and may take its time or be away: signals, output and processes are looked after
meanwhile, and work goes on when it is back.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.counting import count
from penstock.engine.leader.activity import Activity
from penstock.engine.leader.hooks import HookChore
from penstock.engine.supervisor.lock import locked
from penstock.engine.supervisor.shutdown import Shutdown
from penstock.engine.supervisor.store_trouble import AWAY, RETRY_S, StoreTrouble
from penstock.engine.supervisor.supervisor_loop import SupervisorLoop
from penstock.engine.tracing.sender import refuse_missing
from penstock.engine.worker.calls import InOneThread
from penstock.errors import StoreUnreachable
from penstock.gates.capacity import DrainScope
from penstock.project import Project
from penstock.project.running_release import note_other_release
from penstock.snapshots import open_snapshots
from penstock.store.store import Store
from penstock.store.workers import last_beat

# A store that can't be reached at the start is waited for longer and longer.
LONGEST_WAIT_S = 10.0


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
    # Start again where other sources are in this cell; `has_other_sources` says that this is due.
    follows_cell: bool = False
    has_other_sources: bool = False
    activity: Activity | None = None
    # Set by a program that wants it to stop, from whatever thread.
    stopping: threading.Event | None = None
    # After so long it stops at once what that program wants stopped.
    grace_s: float | None = None
    # What its workers are for, if this is a drain.
    scope: DrainScope | None = None
    _shutdown: Shutdown = field(init=False)
    _trouble: StoreTrouble = field(init=False)
    _calls: InOneThread = field(default_factory=lambda: InOneThread("supervisor"))
    # Once the store is open.
    _loop: SupervisorLoop | None = None

    def __post_init__(self) -> None:
        self.tell = unfailing(self.tell)
        clock = self.project.clock
        self._shutdown = Shutdown(clock, self.project.settings.worker.grace_s)
        self._trouble = StoreTrouble(clock, self.tell)

    async def run(self) -> bool:
        """Work; True if it ended by itself, False if it was told to stop."""
        with locked(self.project.settings):
            loop = asyncio.get_running_loop()
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.add_signal_handler(number, self.stop)
            try:
                store = await self._reach_store()
                if store is not None:
                    await self._work(store)
            finally:
                self._calls.close()
        return not self._shutdown.stops

    def stop(self) -> None:
        """Drain; asked again, stop at once."""
        self._shutdown.stop()
        if self._loop is not None:
            self._loop.drain()

    async def _work(self, store: Store) -> None:
        self._loop = loop = SupervisorLoop(
            self.project,
            store,
            self._calls,
            self._shutdown,
            self._trouble,
            self.tell,
            self.until,
            has_scheduler=self.has_scheduler,
            workers=self.workers,
            reloads=self.reloads,
            follows_cell=self.follows_cell,
            activity=self.activity,
            is_asked_to_stop=lambda: self.stopping is not None and self.stopping.is_set(),
            grace_s=self.grace_s,
            scope=self.scope,
        )
        await loop.run()
        self.wants_reload = loop.wants_reload
        self.has_other_sources = loop.has_other_sources

    async def _reach_store(self) -> Store | None:
        """Open the store, and wait for it if need be: a host may be up before its database is."""
        wait_s = RETRY_S / 2
        while not self._shutdown.stops:
            try:
                return await self._calls(self._open)
            except StoreUnreachable as error:
                self._trouble.say(f"{error.message}; waiting for it", AWAY)
            await self._shutdown.wait(wait_s)
            wait_s = min(LONGEST_WAIT_S, 2 * wait_s)
        return None

    def _open(self) -> Store:
        project = self.project
        refuse_missing(project.settings.tracing)
        snapshots = open_snapshots(project.settings.snapshots, "check")
        snapshots.check()
        snapshots.close()
        store = project.open_store()
        try:
            store.quick_check()
            if project.settings.cell is not None:
                project.keep_to_cell(store)
            note_other_release(project, store, self.tell)
            store.reserve.hold()
            if not store.is_shared:
                self._bury_former(store)
                HookChore(project, store).plan()  # before the first run can end
        except BaseException:
            store.close()
            raise
        return store

    def _bury_former(self, store: Store) -> None:
        """We hold the file's lock, so whoever is registered is dead: nobody waits for a lease to end."""
        for worker in store.workers.all():
            died_at = last_beat(worker.lease_expires_at)
            jobs = store.workers.bury(worker.id, "it was gone when Penstock started", died_at)
            self.tell(f"worker {worker.id} had died: {count(len(jobs), 'job')} to run again")
        for leader in store.leaders.all():
            store.leaders.resign(leader.name, leader.holder, leader.term)


def unfailing(tell: Callable[[str], None]) -> Callable[[str], None]:
    """A log on a full disk, or a terminal that is gone, must not stop the work."""

    def try_to_tell(text: str) -> None:
        with suppress(OSError):
            tell(text)

    return try_to_tell
