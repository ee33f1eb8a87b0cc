"""Calling the application from a request: its verbs wait for the database, so they run in threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from penstock.errors import StoreError
from penstock.journal.origin import API, DASHBOARD, acting_from

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.app import Project

Answer = TypeVar("Answer")
THREADS = 8


async def in_thread(request: Request, call: Callable[[Project], Answer]) -> Answer:
    """What a call of the project answers, from a thread that has a connection of its own."""
    project: Project = request.app.state.project
    origin = API if request.url.path.startswith("/api/") else DASHBOARD

    def called() -> Answer:
        with acting_from(origin):
            return _called(project, call)

    answer: Answer = await request.app.state.calls(called)
    return answer


async def in_thread_reading(request: Request, call: Callable[[Project], Answer]) -> Answer:
    """The same for what only looks: its connection can't write, and gives up in time."""
    project: Project = request.app.state.reading
    answer: Answer = await request.app.state.calls(lambda: _called(project, call))
    return answer


def _called(project: Project, call: Callable[[Project], Answer]) -> Answer:
    try:
        return call(project)
    except StoreError:
        # The next call opens a new connection: the database may be back by then, or another file.
        project.connections.close_of_this_thread()
        raise
