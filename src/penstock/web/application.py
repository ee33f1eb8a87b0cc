"""The whole application: the guard, the API, the dashboard's pages and its files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from penstock.app.calls import CellCalls, InThreads, ProjectCalls
from penstock.app.idempotency import IdempotencyKeys
from penstock.app.secrets import redact
from penstock.app.verbs.problems import Problem, problem_of
from penstock.app.verbs.roles import Role
from penstock.errors import PenstockError
from penstock.web import api, login, reference, streams, trigger
from penstock.web.access import Access
from penstock.web.follower import Follower
from penstock.web.guard import Guard
from penstock.web.mcp_endpoint import PATH as MCP_PATH
from penstock.web.mcp_endpoint import McpEndpoint
from penstock.web.pages import database_page, refused_page, wants_page, welcome_page
from penstock.web.problem_response import problem_response
from penstock.web.threads import THREADS, in_thread_reading

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.app import Project
    from penstock.web.settings import WebSettings

STATIC = Path(__file__).parent / "static"
STATUS_CODES = {404: "not_found", 405: "method_not_allowed"}
Answering = Callable[["Request"], Awaitable[Response]]


def application(project: Project, settings: WebSettings, access: Access) -> Starlette:
    """What a server serves. `access` knows who may come in."""
    mcp = McpEndpoint()
    made = Starlette(
        routes=_routes(mcp),
        middleware=[Middleware(Guard, settings=settings, access=access)],
        exception_handlers={
            Problem: _answer_problem,
            PenstockError: _answer_error,
            HTTPException: _answer_http,
            Exception: _answer_mistake,
        },
    )
    secrets = project.settings.secrets
    made.state.project = project
    made.state.settings = settings
    made.state.access = access
    made.state.calls = InThreads("web", THREADS)
    made.state.project_calls = access.tables = ProjectCalls(project, made.state.calls)
    made.state.cell_calls = CellCalls(project)
    made.state.follower = Follower(project)
    made.state.event_texts = {}
    made.state.keys = IdempotencyKeys()
    made.state.mcp = mcp
    made.state.has_long_read = False
    made.state.mask = lambda text: redact(text, secrets) if secrets else text
    return made


def _routes(mcp: McpEndpoint) -> Sequence[BaseRoute]:
    routes: list[BaseRoute] = [
        *login.ROUTES,
        Route("/healthz", _health, methods=["GET"]),
        Route("/metrics", _metrics, methods=["GET"]),
        *api.routes(),
        *streams.routes(),
        *reference.ROUTES,
        Route(f"{trigger.PATH}{{name}}", _signal, methods=["POST"]),
        Route(MCP_PATH, mcp),
    ]
    if STATIC.is_dir():
        routes.append(Mount("/static", StaticFiles(directory=STATIC), name="static"))
    return [*routes, *_dashboard()]


def _dashboard() -> Sequence[BaseRoute]:
    """The pages, where they are installed."""
    if find_spec("penstock.web.dashboard") is None:
        return [Route("/", _welcome, methods=["GET"])]
    from importlib import import_module

    routes: Sequence[BaseRoute] = import_module("penstock.web.dashboard").ROUTES
    return routes


async def _welcome(request: Request) -> Response:
    return welcome_page()


async def _signal(request: Request) -> Response:
    """As `penstock trigger serve` has it; an alias of `POST /api/v1/signals/{name}` for one release."""
    identity = api.require(request, Role.OPERATOR)
    return await trigger.raise_signal(request, identity.name)


async def _health(request: Request) -> Response:
    """That the server answers; it says nothing of the project, and asks for no login."""
    return PlainTextResponse("ok\n")


OPENMETRICS = "application/openmetrics-text"


async def _metrics(request: Request) -> Response:
    """What Prometheus scrapes: it needs a session or a token, of any role."""
    is_open = OPENMETRICS in request.headers.get("Accept", "")
    wanted = "openmetrics" if is_open else "prometheus"
    text = await in_thread_reading(request, lambda project: project.metrics.text(wanted))
    kind = f"{OPENMETRICS}; version=1.0.0" if is_open else "text/plain; version=0.0.4"
    return Response(request.app.state.mask(text), media_type=f"{kind}; charset=utf-8")


def _shown(request: Request, problem: Problem) -> Response:
    if not wants_page(request.scope):
        return problem_response(problem)
    return database_page() if problem.status == 503 else refused_page(problem)


async def _answer_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101  by the table of handlers
    return _shown(request, error)


async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, PenstockError)  # noqa: S101  by the table of handlers
    problem = problem_of(error)
    problem.detail = request.app.state.mask(problem.detail)
    problem.hint = request.app.state.mask(problem.hint)
    return _shown(request, problem)


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  by the table of handlers
    code = STATUS_CODES.get(error.status_code, "http")
    detail = "There is nothing at this path." if error.status_code == 404 else str(error.detail)
    is_path = error.status_code == 404 and not wants_page(request.scope)
    hint = "the page /api lists every path" if is_path else ""
    headers = dict(error.headers or {})
    return _shown(request, Problem(error.status_code, code, detail, hint, headers=headers))


async def _answer_mistake(request: Request, error: Exception) -> Response:
    """A mistake of ours: the server's log has its kind, the client is told nothing of it."""
    detail = "The server made a mistake; its log has more."
    return _shown(request, Problem(500, "internal", detail))
