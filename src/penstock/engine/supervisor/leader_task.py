"""Schedules and upkeep beside the workers, with a connection and a thread of their own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from penstock.engine.leader.activity import Activity
from penstock.engine.leader.leader_loop import LOOK_S, LeaderLoop, a_holder
from penstock.engine.supervisor.shutdown import Shutdown
from penstock.engine.supervisor.store_trouble import StoreTrouble
from penstock.engine.worker.calls import InOneThread
from penstock.errors import StoreError
from penstock.project import Project
from penstock.store.store import Store


class LeaderTask:
    """Looks after them until the supervisor leaves."""

    def __init__(
        self,
        project: Project,
        shutdown: Shutdown,
        trouble: StoreTrouble,
        *,
        has_scheduler: bool,
        activity: Activity | None,
        tell: Callable[[str], None],
    ) -> None:
        self._project = project
        self._shutdown = shutdown
        self._trouble = trouble
        self._has_scheduler = has_scheduler
        self._activity = activity
        self._tell = tell
        self._store: Store | None = None
        # Whether everything that may start a run was looked at, as far as that is its part.
        self.is_settled = not has_scheduler

    async def run(self) -> None:
        calls = InOneThread("leader")
        leader_loop: LeaderLoop | None = None
        try:
            while not self._shutdown.is_leaving:
                has_more, rest_s = False, LOOK_S
                try:
                    if leader_loop is None:
                        leader_loop = await calls(self._make_loop)
                    has_more = await calls(leader_loop.look)
                    rest_s, self.is_settled = leader_loop.rest_s, leader_loop.is_settled
                except StoreError as error:
                    self._trouble.meet(error)
                if not has_more:
                    await self._shutdown.wait(rest_s)
        finally:
            if leader_loop is not None:
                with suppress(StoreError):
                    await calls(leader_loop.tell)
                await calls(leader_loop.close)
            calls.close()

    def give_up(self) -> None:
        """Wait no longer for a store that does not answer."""
        if self._store is not None:
            self._store.give_up()

    def _make_loop(self) -> LeaderLoop:
        self._store = store = self._project.open_store()
        return LeaderLoop(
            self._project,
            store,
            a_holder(),
            has_scheduler=self._has_scheduler,
            activity=self._activity,
            tell=self._tell,
        )
