"""Calling a project from an event loop: its verbs wait for the store, so they are called in threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from penstock.engine.worker.calls import Calls, InOneThread, InThreads
from penstock.errors import StoreError, UsageError, nearest
from penstock.journal.origin import API, acting_from

if TYPE_CHECKING:
    from penstock.app import Project

__all__ = ["Calls", "CellCalls", "InOneThread", "InThreads", "ProjectCalls"]

Answer = TypeVar("Answer")
# A read that takes longer is given up; so is one whose rows are more than a page can hold (`app.paging`).
LONGEST_READ_S = 10.0
THREADS_OF_CELL = 2


class ProjectCalls:
    """Calls of one project from coroutines, each in a thread that has a connection of its own."""

    def __init__(self, project: Project, calls: Calls, longest_s: float = LONGEST_READ_S) -> None:
        self.project = project
        self._calls = calls
        self._longest_s = longest_s

    async def writing(self, call: Callable[[Project], Answer], origin: str = API) -> Answer:
        """What an act answers."""

        def called() -> Answer:
            with acting_from(origin):
                return _called(self.project, call)

        return await self._calls(called)

    async def reading(
        self, call: Callable[[Project], Answer], longest_s: float | None = None
    ) -> Answer:
        """The same for what only looks: its connection can't write, and gives up in time."""

        def looked(project: Project) -> Answer:
            # Sources that are new in the file become known before, once.
            _ = project.source_ids
            with project.connection.only_reading(longest_s or self._longest_s):
                return call(project)

        return await self._calls(lambda: _called(self.project, looked))


class CellCalls:
    """Calls of the other cells of a project, each in its own threads: one that is down holds up no other."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._threads: dict[str, InThreads] = {}
        self._calls: dict[str, ProjectCalls] = {}

    def of(self, cell: str) -> ProjectCalls:
        """The calls of the cell of this name; a usage error if there is none."""
        if cell not in self._calls:
            from penstock.app.cells import project_in

            if cell not in (cells := self._project.settings.cells):
                hint = nearest(cell, cells)
                raise UsageError(f"there is no cell {cell!r:.40}", hint, code="no_cell")
            project = project_in(self._project, cell)
            self._threads[cell] = threads = InThreads(f"cell-{cell}", THREADS_OF_CELL)
            self._calls[cell] = ProjectCalls(project, threads)
        return self._calls[cell]

    def close(self) -> None:
        for threads in self._threads.values():
            threads.close()
        for calls in self._calls.values():
            calls.project.close()


def _called(project: Project, call: Callable[[Project], Answer]) -> Answer:
    try:
        return call(project)
    except StoreError:
        # The next call opens a new connection: the database may be back by then, or another file.
        project.connections.close_of_this_thread()
        raise
