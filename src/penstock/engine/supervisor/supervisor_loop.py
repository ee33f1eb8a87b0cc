"""The supervisor's loop: a pulse looks after leases, the dead of other hosts, changed code and every worker.

It is made when the store is open. The store is asked in a thread; a task beside the loop ends workers in
time, whatever the store is doing, and another keeps schedules and upkeep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from penstock.counting import count
from penstock.engine.leader.activity import Activity
from penstock.engine.supervisor.cell_watch import CellWatch
from penstock.engine.supervisor.code_reload import CodeReload
from penstock.engine.supervisor.leader_task import LeaderTask
from penstock.engine.supervisor.looks import Looks
from penstock.engine.supervisor.release_watch import ReleaseWatch
from penstock.engine.supervisor.released_runs import ReleasedRuns
from penstock.engine.supervisor.shutdown import Shutdown
from penstock.engine.supervisor.store_trouble import StoreTrouble
from penstock.engine.supervisor.watch import Watch
from penstock.engine.supervisor.worker_slots import WorkerSlots, is_alive
from penstock.engine.worker.calls import InOneThread
from penstock.gates.capacity import DrainScope
from penstock.project import Project
from penstock.store.store import Store

PULSE_S = 0.05
LOOK_S = 1.0
# How often suspects and the end of the work are looked for: a file is asked sooner than a server.
GLANCE_S = 0.1
SHARED_GLANCE_S = 0.5
# A store that does not answer this long after the workers were killed is not waited for: leases expire.
GIVE_UP_S = 5.0


class SupervisorLoop:
    """The work of a supervisor, from its open store to the end of its last worker."""

    def __init__(
        self,
        project: Project,
        store: Store,
        calls: InOneThread,
        shutdown: Shutdown,
        trouble: StoreTrouble,
        tell: Callable[[str], None],
        until: Callable[[], bool],
        *,
        has_scheduler: bool,
        workers: int,
        reloads: bool,
        follows_cell: bool,
        activity: Activity | None,
        is_asked_to_stop: Callable[[], bool],
        grace_s: float | None = None,
        scope: DrainScope | None = None,
    ) -> None:
        self._project = project
        self._store = store
        self._calls = calls
        self._looks = Looks(calls, store)
        self._shutdown = shutdown
        self._trouble = trouble
        self._tell = tell
        self._until = until
        self._is_asked_to_stop = is_asked_to_stop
        self._grace_s = float("inf") if grace_s is None else grace_s
        self._at_once_at = float("inf")
        self._watch = Watch(store, project.clock)
        self._workers = WorkerSlots(
            project, store, calls, self._watch.contact, shutdown, trouble, tell, workers, scope
        )
        # A drain needs nobody beside it: what is done once for all is its part while nobody else does it.
        self._leads = has_scheduler or not store.is_shared or scope is not None
        self._leader = LeaderTask(
            project, shutdown, trouble, has_scheduler=has_scheduler, activity=activity, tell=tell
        )
        self._release = ReleaseWatch(project, store, self._looks, self._end, tell)
        self._code = CodeReload(project, shutdown, self._make_way, tell, reloads=reloads)
        self._cell = CellWatch(project, store, calls, self._make_way, tell, follows=follows_cell)
        # A drain, and who keeps schedules only, leave them to others.
        works_for_releases = scope is None and workers > 0
        self._released = ReleasedRuns(project, store, trouble.say) if works_for_releases else None
        self._glance_s = SHARED_GLANCE_S if store.is_shared else GLANCE_S
        self._due: dict[str, float] = {}

    @property
    def wants_reload(self) -> bool:
        return self._code.is_due

    @property
    def has_other_sources(self) -> bool:
        return self._cell.is_due

    def drain(self) -> None:
        self._workers.drain_all()

    async def run(self) -> None:
        """Work until it is over; raises if nobody can work."""
        beside = [asyncio.create_task(self._end_the_slow())]
        if self._leads:
            beside.append(asyncio.create_task(self._leader.run()))
        try:
            while not self._is_over():
                self._heed()
                for task in beside:
                    if task.done():
                        task.result()
                await self._pulse()
                await asyncio.sleep(PULSE_S)
        finally:
            self._shutdown.finish()
            self._code.cancel()
            await self._workers.end_all()
            await _ended(beside)
            await self._calls(self._store.close)
        if self._workers.failure is not None:
            raise self._workers.failure
        if self._release.refusal is not None:
            raise self._release.refusal

    def _is_over(self) -> bool:
        if self._workers.failure is not None:
            return True
        return self._shutdown.is_leaving and not any(self._workers.children())

    def _heed(self) -> None:
        """Stop if a program asks for it; and at once, after the grace that it gives."""
        now = self._project.clock.monotonic()
        if self._is_asked_to_stop() and not self._shutdown.stops:
            self._at_once_at = now + self._grace_s
        elif now < self._at_once_at:
            return
        else:
            self._at_once_at = float("inf")
        self._shutdown.stop()
        self.drain()

    async def _end_the_slow(self) -> None:
        """Whatever the store is doing, who outlasts its grace or the time of a step is ended in time."""
        while True:
            self._workers.kill_stuck()
            if self._now() >= self._shutdown.kill_at:
                self._workers.kill_all()
            if self._now() >= self._shutdown.kill_at + GIVE_UP_S:
                self._store.give_up()
                self._leader.give_up()
                return
            await asyncio.sleep(PULSE_S)

    async def _pulse(self) -> None:
        for chore in (
            self._workers.beat_all,
            self._look_around,
            self._look_for_suspects,
            self._look_for_releases,
            self._look_at_code,
            self._ask_if_done,
        ):
            await self._trouble.attempt(chore)
        for slot in self._workers.slots:
            await self._trouble.attempt(partial(self._workers.tend, slot))

    async def _look_around(self) -> None:
        if self._shutdown.is_leaving or not self._is_due("look", LOOK_S):
            return
        # Whatever became of ours is for `tend` to see: who slept itself must not take them for lost.
        ours = {child.name for child in self._workers.children()}
        alive = {child.name for child in self._workers.children() if is_alive(child)}
        for worker, jobs in await self._calls(lambda: self._watch.look(alive, ours)):
            self._tell(
                f"worker {worker} stopped sending heartbeats: {count(jobs, 'job')} to run again"
            )

    async def _look_for_suspects(self) -> None:
        if not self._shutdown.is_leaving and self._is_due("suspects", self._glance_s):
            await self._workers.look_for_suspects()

    async def _look_for_releases(self) -> None:
        if self._released is None or self._shutdown.is_leaving or not self._is_due("by", LOOK_S):
            return
        self._workers.perform_by_releases(await self._looks(self._released.look))

    async def _look_at_code(self) -> None:
        if not self._shutdown.is_leaving and self._is_due("code", LOOK_S):
            await self._code.look()
            await self._release.look()
            await self._cell.look()

    async def _ask_if_done(self) -> None:
        if self._shutdown.is_leaving or not self._is_due("until", self._glance_s):
            return
        is_settled = self._leader.is_settled
        if is_settled and await self._looks(self._until):
            # A file that was taken away is idle, too.
            await self._calls(self._store.refuse_if_replaced)
            self._end()

    def _end(self) -> None:
        self._shutdown.finish()
        self.drain()

    def _make_way(self) -> None:
        self._shutdown.make_way()
        self.drain()

    def _is_due(self, what: str, every_s: float) -> bool:
        now = self._now()
        if now < self._due.get(what, now):
            return False
        self._due[what] = now + every_s
        return True

    def _now(self) -> float:
        return self._project.clock.monotonic()


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    """The tasks beside the loop, over: each may end what it is doing, and its trouble is not news now."""
    slow, *others = tasks
    await asyncio.gather(*others, return_exceptions=True)
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
