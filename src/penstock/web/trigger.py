"""The trigger: signals over HTTP, under the path and with the token that they had before the API.

`penstock trigger serve` serves it alone, with a door of its own; `penstock web` has the same path for the
holders of that token and of others. Both are served by one listener. New callers use the API:
`POST /api/v1/signals/{name}`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route

from penstock.app.calls import Calls, InOneThread, ProjectCalls
from penstock.app.verbs.problems import Problem
from penstock.app.verbs.roles import Identity, Role
from penstock.errors import PenstockError, Refused, StoreError, UsageError
from penstock.journal.origin import TRIGGER
from penstock.web.body import Body
from penstock.web.door import DELIVERY, SIGNATURE, Door, has_token
from penstock.web.listener import Listener
from penstock.web.origins import LOCAL_NAMES, is_loopback
from penstock.web.settings import WebSettings

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from penstock.app import Project
    from penstock.app.views.signals import RaisedView

ACTOR = "http"
PATH = "/signals/"
LONGEST_KEY = 200
JSON = "application/json"


def run_trigger(project: Project, host: str, port: int, tell: Callable[[str], None]) -> None:
    """Listen until stopped."""
    refuse_open_door(project, host)
    calls = InOneThread("trigger")
    try:
        asyncio.run(_serve(project, calls, host, port, tell))
    finally:
        calls.close()


def refuse_open_door(project: Project, host: str) -> None:
    """Without a token, nobody but this machine may knock; a token that can't be known is not none."""
    if project.signals.trigger().token is None and not is_loopback(host):
        raise Refused(
            f"without a token it listens on loopback only, not on {host}",
            "trigger: {token: ${PENSTOCK_TRIGGER_TOKEN}} in penstock.yaml",
            code="door_open",
        )


async def _serve(
    project: Project, calls: Calls, host: str, port: int, tell: Callable[[str], None]
) -> None:
    # Opens the store in its thread, or says what is wrong.
    await calls(lambda: project.source_ids)
    server = listener(project, calls, host, port, tell)
    shown = f"[{host}]" if ":" in host else host
    server.on_listening = lambda bound: tell(f"listening on http://{shown}:{bound}")
    try:
        await server.serve()
    finally:
        await calls(project.close)


def listener(
    project: Project, calls: Calls, host: str, port: int, tell: Callable[[str], None]
) -> Listener:
    """What serves the trigger alone."""
    return Listener(application(project, calls, host), WebSettings(host, port), tell)


def application(project: Project, calls: Calls, host: str) -> Starlette:
    """The trigger alone, to be served or tested."""
    settings = project.signals.trigger()
    door = Door(settings.token, (*LOCAL_NAMES, host.lower(), *settings.hosts))
    made = Starlette(
        routes=[Route(f"{PATH}{{name}}", _raise_for_all, methods=["POST"])],
        middleware=[Middleware(_AtDoor, door=door, most_bytes=settings.max_bytes)],
        exception_handlers={Problem: _answer_problem, HTTPException: _answer_http},
    )
    made.state.project_calls = ProjectCalls(project, calls)
    return made


class _AtDoor:
    """Around the whole application: whoever may not is told nothing of what there is."""

    def __init__(self, app: ASGIApp, door: Door, most_bytes: int) -> None:
        self._app = app
        self._door = door
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.datastructures import Headers

        if scope["type"] != "http":
            return
        body, headers = Body(receive, self._most_bytes), Headers(scope=scope)
        try:
            self._door.check(headers)
            body.expect(headers.get("Content-Length"))
            if SIGNATURE in headers:
                self._door.check_signature(headers, await body.whole())
        except Problem as problem:
            await _as_error(problem)(scope, receive, send)
            return
        await self._app(scope, body, send)


async def _raise_for_all(request: Request) -> Response:
    return await raise_signal(request, ACTOR)


async def raise_signal(request: Request, actor: str) -> Response:
    """Raise the signal that the path names, with the body as its data."""
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Problem(415, "not_json", f"the body must be {JSON}")
    data = _json(await request.body())
    key = request.headers.get("Idempotency-Key") or request.headers.get(DELIVERY) or None
    if key is not None and len(key) > LONGEST_KEY:
        detail = f"an Idempotency-Key has at most {LONGEST_KEY} characters"
        raise Problem(400, "bad_key", detail)
    about = {
        "key": key,
        "source": request.query_params.get("source"),
        "actor": actor,
        "traceparent": request.headers.get("traceparent"),
    }
    name = request.path_params["name"]
    calls: ProjectCalls = request.app.state.project_calls
    raised = await _raised(calls, lambda project: project.signals.raise_(name, data, **about))
    answer = {"signal": raised.id, "name": raised.name, "is_new": raised.is_new}
    return Response(msgspec.json.encode(answer), 202, media_type=JSON)


async def _raised(calls: ProjectCalls, call: Callable[[Project], RaisedView]) -> RaisedView:
    try:
        return await calls.writing(call, TRIGGER)
    except StoreError:
        raise Problem(503, "store", "the database does not answer now") from None
    except UsageError as error:
        raise Problem(400, error.code, error.message) from None
    except PenstockError as error:
        raise Problem(409, error.code, error.message) from None


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Problem(400, "bad_json", "the body is not JSON") from None


def trigger_identity(project: Project, authorization: str) -> Identity | None:
    """Who has the trigger's own token; only its path is open to them."""
    try:
        token = project.signals.trigger().token
    except PenstockError:  # its variable is not set
        return None
    if token is None or not has_token(authorization, token):
        return None
    return Identity(ACTOR, Role.OPERATOR)


def _as_error(problem: Problem) -> Response:
    text = msgspec.json.encode({"error": problem.detail})
    return Response(text, problem.status, problem.headers, JSON)


async def _answer_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101  by the table of handlers
    return _as_error(error)


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  by the table of handlers
    return _as_error(Problem(error.status_code, "http", str(error.detail)))
