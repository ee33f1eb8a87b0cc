"""The API: a route for every act and every read of the tables, under /api/v1."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_origin
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from penstock.app.guard import confirming
from penstock.app.verbs.acts import ACTS, Act
from penstock.app.verbs.answers import as_answer
from penstock.app.verbs.parameters import converted
from penstock.app.verbs.problems import Problem
from penstock.app.verbs.reads import READS, Read
from penstock.app.verbs.roles import Identity, Role
from penstock.app.views.cells import CellsSourcesView
from penstock.app.views.view import Page
from penstock.web.guard import INNER_SLASH
from penstock.web.idempotency import REPLAYED, asked_once, keys_of
from penstock.web.lines import lines_response
from penstock.web.problem_response import PREFIX
from penstock.web.threads import LONG_READ_S, in_thread, in_thread_reading, one_long_read

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.app import Project

JSON = "application/json"
# The name of the environment, for acts that can't be taken back in production.
CONFIRM = "Penstock-Confirm"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# A larger answer is refused: a page of a thousand large records, say.
MOST_BYTES = 32_000_000
Endpoint = Callable[["Request"], Awaitable[Response]]


def routes() -> list[Route]:
    """One for each path of the tables; fixed paths come before those with parameters."""
    made = calls_by_path()
    return [
        Route(PREFIX + path, _by_method(made[path]), methods=METHODS)
        for path in sorted(made, key=lambda path: path.replace("{", "~"))
    ]


def calls_by_path() -> dict[str, dict[str, Endpoint]]:
    """What each path of the tables does, by method."""
    made: dict[str, dict[str, Endpoint]] = {}
    for act in ACTS.values():
        made.setdefault(act.path, {})["POST"] = _act_endpoint(act)
    for read in READS.values():
        made.setdefault(read.path, {})["GET"] = _read_endpoint(read)
    return made


def _by_method(calls: Mapping[str, Endpoint]) -> Endpoint:
    """A path takes every method, to refuse some: else one with parameters could take its place."""
    allowed = sorted(["HEAD", *calls] if "GET" in calls else calls)

    async def endpoint(request: Request) -> Response:
        call = calls.get("GET" if request.method == "HEAD" else request.method)
        if call is None:
            raise Problem(
                405,
                "method_not_allowed",
                f"This path takes {' and '.join(allowed)}.",
                headers={"Allow": ", ".join(allowed)},
            )
        return await call(request)

    return endpoint


def _act_endpoint(act: Act) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        identity = require(request, act.role)
        given = path_values(request, act.path_parameters) | await body_values(request, act)
        asked = asked_once(request, identity, act, given)

        def perform(project: Project) -> tuple[str, bool]:
            def called() -> str:
                with confirming(request.headers.get(CONFIRM, "")):
                    return json_text(request, as_answer(act.call(project, identity, given)))

            if asked is None:
                return called(), False
            return keys_of(request).perform(project, asked, called)

        text, is_replayed = await in_thread(request, perform)
        headers = {REPLAYED: "true"} if is_replayed else None
        return Response(text.encode(), headers=headers, media_type=JSON)

    return endpoint


def _read_endpoint(read: Read) -> Endpoint:
    call_in = in_thread if read.writes else in_thread_reading

    async def endpoint(request: Request) -> Response:
        require(request, read.role)
        given = path_values(request, read.path_parameters) | query_values(request, read.parameters)
        if not read.is_long:
            found = await call_in(request, lambda project: read.call(project, given))
            return read_response(request, found)
        with one_long_read(request) as leave:
            if get_origin(read.answer) is Iterator:
                return await lines_response(request, lambda found: read.call(found, given), leave)
            found = await in_thread_reading(
                request, lambda project: read.call(project, given), LONG_READ_S
            )
            leave()
            return read_response(request, found)

    return endpoint


def require(request: Request, role: Role) -> Identity:
    """Who asks, if they may."""
    identity: Identity = request.state.identity
    if not identity.may(role):
        raise Problem(
            403,
            "role_needed",
            f"{identity.name} has the role {identity.role}; this needs {role}.",
            f"an administrator makes a token that may: penstock token create --role {role}",
        )
    return identity


def path_values(request: Request, parameters: type[msgspec.Struct]) -> dict[str, Any]:
    """What the path names. A number that is none is one that does not exist."""
    given = {name: text.replace(INNER_SLASH, "/") for name, text in request.path_params.items()}
    try:
        found = msgspec.convert(given, parameters, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(404, "not_found", f"There is nothing at this path: {error}") from None
    return msgspec.structs.asdict(found)


def query_values(request: Request, parameters: type[msgspec.Struct]) -> dict[str, Any]:
    """What the query says; a list is written by repeating its name."""
    fields = {field.name: field for field in msgspec.structs.fields(parameters)}
    given: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in fields and is_list(fields[name].type):
            given.setdefault(name, []).append(value)
        elif name in given:
            raise Problem(422, "bad_parameter", f"{name} is there twice.")
        elif value.lower() == "null" and name in fields and not _is_text(fields[name].type):
            raise Problem(422, "bad_parameter", f"{name} can't be null; leave it out.")
        else:
            given[name] = value
    return converted(given, parameters, strict=False)


def is_list(hint: Any) -> bool:
    return _may_be(hint, msgspec.inspect.ListType)


def _is_text(hint: Any) -> bool:
    return _may_be(hint, msgspec.inspect.StrType)


def _may_be(hint: Any, wanted: type[msgspec.inspect.Type]) -> bool:
    kind = msgspec.inspect.type_info(hint)
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    return any(isinstance(each, wanted) for each in kinds)


async def body_values(request: Request, act: Act) -> dict[str, Any]:
    """What the body says; no body is an empty one."""
    body = await request.body()
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if body and kind != JSON:
        raise Problem(415, "not_json", f"The body must be {JSON}.")
    try:
        given = msgspec.json.decode(body) if body.strip(b" \t\r\n") else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Problem(400, "bad_json", "The body is not JSON.") from None
    return converted(given, act.parameters, strict=True)


def read_response(request: Request, found: Any) -> Response:
    """With an ETag: whoever has it already is told so, and nothing more is sent."""
    answer = json_response(request, as_answer(found))
    if len(answer.body) > MOST_BYTES:
        raise Problem(
            422,
            "answer_too_large",
            f"The answer would have more than {MOST_BYTES:,} B.",
            "ask for less: a smaller limit, or one item at a time",
        )
    etag = f'"{hashlib.sha256(bytes(answer.body)).hexdigest()[:32]}"'
    if _has_etag(request.headers.get("If-None-Match", ""), etag):
        answer = Response(status_code=304)
    answer.headers["ETag"] = etag
    answer.headers["Cache-Control"] = "private, no-cache"
    following = found.next if isinstance(found, (Page, CellsSourcesView)) else None
    if following is not None:
        answer.headers["Link"] = f'<{_next_path(request, following)}>; rel="next"'
    return answer


def _has_etag(header: str, etag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in header.split(",")]
    return etag in known or "*" in known


def _next_path(request: Request, cursor: str) -> str:
    kept = [each for each in request.query_params.multi_items() if each[0] != "cursor"]
    return f"{request.scope['raw_path'].decode()}?{urlencode([*kept, ('cursor', cursor)])}"


def json_response(request: Request, answer: Mapping[str, Any] | Any) -> Response:
    """JSON with every secret of the project masked."""
    return Response(json_text(request, answer).encode(), media_type=JSON)


def json_text(request: Request, answer: Mapping[str, Any] | Any) -> str:
    mask: Callable[[str], str] = request.app.state.mask
    return mask(msgspec.json.encode(answer).decode())
