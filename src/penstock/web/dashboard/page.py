"""A page: what it reads, in a thread, and the template that shows it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from penstock.app.verbs.acts import ACTS
from penstock.app.verbs.problems import problem_of
from penstock.errors import PenstockError, StoreError, UsageError
from penstock.web.dashboard.act_address import act_address
from penstock.web.dashboard.navigation import NAVIGATION, navigation_of
from penstock.web.dashboard.templates import address, piece, render
from penstock.web.threads import CELL, calls_of, in_thread, in_thread_reading

if TYPE_CHECKING:
    from penstock.app import Project

# How many rows a list has on one page.
ROWS = 50
# Beneath it are the pages of the other cells, each beneath the cell's name.
CELLS = "/cell/"
# A link of a template to a page of the same cell: text from outside has no such quotes. What is about all
# cells, and what is not a page, is not a cell's.
_LINK = re.compile(r"""(\s(?:href|action)=")/(?!/|static/|api[/"]|cells?[/"?]|logout|login)""")


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page: the project, who asks, and what for."""

    request: Request
    project: Project

    def text(self, name: str) -> str | None:
        """A value of the query; None if it is missing or empty."""
        return self.request.query_params.get(name) or None

    def number(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not value.isascii() or not value.isdigit() or len(value) > 18:
            raise UsageError(f"{name} is a number", code="bad_number")
        return int(value)

    def is_on(self, name: str) -> bool:
        return self.text(name) in ("1", "on", "true")

    @property
    def path(self) -> Mapping[str, Any]:
        return self.request.path_params

    @property
    def here(self) -> str:
        """This page's own address, for the way back from an act."""
        url = self.request.url
        return f"{url.path}?{url.query}" if url.query else url.path

    def following(self, cursor: str | None) -> str | None:
        """The address of the next page of this list."""
        if cursor is None:
            return None
        query = {**self.request.query_params, "cursor": cursor}
        return address(self.request.url.path, **query)


Read = Callable[[Visit], dict[str, Any]]


def shown(visit: Visit, template: str, status_code: int = 200, /, **values: Any) -> Response:
    """A page as the browser gets it, with every secret of the project masked."""
    request, settings = visit.request, visit.project.settings
    identity, beneath = request.state.identity, beneath_cell(request)
    own = request.app.state.project.settings.cell_name
    common = {
        "now": 0.0 if status_code == 503 else visit.project.now(),
        "project": settings.project,
        "environment": settings.environment,
        "identity": identity,
        "csrf": request.state.csrf,
        "navigation": navigation_of(has_cells=bool(settings.cells)),
        "path": request.url.path.removeprefix(beneath) or "/",
        "cell": settings.cell_name if settings.cells else "",
        "is_other_cell": bool(beneath),
        "in_cell": lambda cell, path: path if cell == own else f"{CELLS}{piece(cell)}{path}",
        "here": visit.here,
        "query": dict(request.query_params),
        # What another cell's page shows is acted upon in that cell.
        "may": lambda name: not beneath and name in ACTS and identity.may(ACTS[name].role),
        "act_address": lambda name, target: act_address(name, target, visit.here),
    }
    text = render(template, **{**common, **values})
    if beneath:
        text = _LINK.sub(rf"\1{beneath}/", text)
    return HTMLResponse(request.app.state.mask(text), status_code)


def beneath_cell(request: Request) -> str:
    """Beneath which path the pages of another cell are, where this is one of them."""
    cell = request.path_params.get(CELL)
    return "" if cell is None else f"{CELLS}{piece(cell)}"


def refused(visit: Visit, error: PenstockError) -> Response:
    """The page of an error: what is so, and what to do."""
    problem = problem_of(error)
    # The hint of a remedy is a call in Python; the page has a button for it, or a link.
    hint = "" if problem.remedy is not None else problem.hint
    section = next((each for each in NAVIGATION[1:] if _is_in(visit, each.path)), None)
    return shown(visit, "error.html", problem.status, problem=problem, hint=hint, section=section)


def _is_in(visit: Visit, path: str) -> bool:
    """Whether a page belongs to an entry of the menu; jobs and pages belong to runs."""
    here = visit.request.url.path.removeprefix(beneath_cell(visit.request))
    beneath = {"/runs": ("/jobs/", "/snapshots/"), "/records": ("/record",)}
    return here.startswith((f"{path}/", *beneath.get(path, ())))


def page(
    template: str, read: Read, *, writes: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that reads in a thread, and answers with the page or with why there is none.

    `writes`: its connection may write, because what it shows is completed when it is first looked at.
    """
    call = in_thread if writes else in_thread_reading

    async def endpoint(request: Request) -> Response:
        try:
            return await call(
                request, lambda project: _answered(Visit(request, project), template, read)
            )
        except StoreError as error:
            if CELL not in request.path_params:
                raise
            # The server's own database answers: only this cell is away.
            return refused(Visit(request, calls_of(request).project), error)

    return endpoint


def _answered(visit: Visit, template: str, read: Read) -> Response:
    try:
        return shown(visit, template, **read(visit))
    except StoreError:
        # What the connection is worth is decided where it was opened.
        raise
    except PenstockError as error:
        return refused(visit, error)
