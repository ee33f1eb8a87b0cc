"""Calling the application from a request: its verbs wait for the database, so they run in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from penstock.app.verbs.problems import Problem
from penstock.journal.origin import API, DASHBOARD

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.app import Project
    from penstock.app.calls import ProjectCalls

Answer = TypeVar("Answer")
THREADS = 8
# The part of a page's path that names another cell.
CELL = "cell"
# When to ask again for what the server does once at a time.
BUSY_S = 5
# One that goes through the whole database, of which a server does one at a time.
LONG_READ_S = 600.0


def calls_of(request: Request) -> ProjectCalls:
    """The project that is asked: the server's own, or that of the cell in the path."""
    cell = request.path_params.get(CELL)
    state = request.app.state
    found: ProjectCalls = state.project_calls if cell is None else state.cell_calls.of(cell)
    return found


async def in_thread(request: Request, call: Callable[[Project], Answer]) -> Answer:
    """What an act answers; the journal says by which front end it was done."""
    calls = calls_of(request)
    origin = API if request.url.path.startswith("/api/") else DASHBOARD
    return await calls.writing(call, origin)


async def in_thread_reading(
    request: Request, call: Callable[[Project], Answer], longest_s: float | None = None
) -> Answer:
    """What a read answers."""
    calls = calls_of(request)
    return await calls.reading(call, longest_s)


@contextmanager
def one_long_read(request: Request) -> Iterator[Callable[[], None]]:
    """The server's one place for what takes long; whoever is given the way out of it must call it.

    It is left at once if the body raises.
    """
    state = request.app.state
    if state.has_long_read:
        raise Problem(
            429,
            "busy",
            "The server is already busy with a read of the whole database or a simulation.",
            "ask again when that is done",
            headers={"Retry-After": str(BUSY_S)},
        )
    state.has_long_read = True

    def leave() -> None:
        state.has_long_read = False

    try:
        yield leave
    except BaseException:
        leave()
        raise
