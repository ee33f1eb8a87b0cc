"""The OpenAPI 3.1 document of the API, made from the tables of acts, reads and streams."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_origin

from penstock.app.guard import asks_for_name
from penstock.app.verbs.acts import ACTS, Act
from penstock.app.verbs.parameters import verb_of
from penstock.app.verbs.reads import READS, Read
from penstock.app.verbs.schemas import Schema, Schemas, properties_of
from penstock.version import __version__
from penstock.web import idempotency
from penstock.web.api import CONFIRM
from penstock.web.lines import MEDIA_TYPE as LINES
from penstock.web.problem_response import MEDIA_TYPE as PROBLEM
from penstock.web.problem_response import PREFIX
from penstock.web.streams import MEDIA_TYPE as EVENTS
from penstock.web.streams import STREAMS, Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

JSON = "application/json"
ROLE, UNDO = "x-penstock-role", "x-penstock-undo"
ABOUT = (
    "Every verb and view of a Penstock project. Reads are GET and have ETags; acts are POST, are written to "
    "the journal in the name of who asks, and take an Idempotency-Key. A `/` within a segment of a path is "
    "written as `%2F`."
)
# What any request may be refused with; the code of the problem says more.
REFUSALS = {
    400: "the path or the body can't be read",
    401: "there is no session, or the token is not valid",
    403: "this identity may not do it, or it comes from another origin",
    404: "there is no such thing",
    409: "not possible in the present state",
    413: "the body is too large",
    415: "the body is not JSON",
    422: "a parameter is not what it should be",
    429: "too much at once; Retry-After says when to ask again",
    503: "the database does not answer; Retry-After says when to ask again",
}
OF_ACTS_ALONE = (413, 415)
CONFIRM_PARAMETER = {
    "name": CONFIRM,
    "in": "header",
    "description": "the environment's name, where that is guarded: what this does can't be taken back",
    "schema": {"type": "string"},
}
KEY_PARAMETER = {
    "name": idempotency.HEADER,
    "in": "header",
    "description": "the act is performed once for each key, and its answer kept for 24 hours",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": idempotency.LONGEST_KEY,
        "pattern": "^[ -~]+$",
    },
}


@cache
def document(cookie: str) -> Schema:
    """The whole document. `cookie` is the name under which this server keeps sessions."""
    verbs: list[Act | Read | Stream] = [*ACTS.values(), *READS.values(), *STREAMS.values()]
    answers = [each.answer for each in verbs if not is_lines(each.answer)]
    schemas = Schemas([act.parameters for act in ACTS.values()], answers)
    paths: dict[str, Schema] = {}
    for act in ACTS.values():
        paths.setdefault(PREFIX + act.path, {})["post"] = _of_act(act, schemas)
    for read in READS.values():
        paths.setdefault(PREFIX + read.path, {})["get"] = _of_read(read, schemas)
    for stream in STREAMS.values():
        paths.setdefault(PREFIX + stream.path, {})["get"] = _of_stream(stream, schemas)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Penstock",
            "version": __version__,
            "summary": "Durable ingestion: sources in, records out",
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"session": []}],
        "tags": [{"name": name} for name in _nouns()],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "responses": {f"Refused{status}": _refusal(status) for status in REFUSALS},
            "securitySchemes": _security(cookie),
        },
    }


def is_lines(answer: Any) -> bool:
    return get_origin(answer) is Iterator and get_args(answer) == (str,)


def _of_act(act: Act, schemas: Schemas) -> Schema:
    _, required = properties_of(act.parameters)
    made = _operation(act.name, act.role, list(_in_path(act.path_parameters)))
    if act.keeps_answer:
        made["parameters"].append(KEY_PARAMETER)
    if asks_for_name(act.name):
        made["parameters"].append(CONFIRM_PARAMETER)
    if act.undo:
        made[UNDO] = act.undo
    made["requestBody"] = {
        "required": bool(required),
        "content": {JSON: {"schema": schemas.body(act.parameters)}},
    }
    headers = {
        idempotency.REPLAYED: {
            "description": "`true`: this is the answer of an earlier request with this key",
            "schema": {"const": "true"},
        }
    }
    done = {"description": "the result", "content": _json(schemas.answer(act.answer))}
    made["responses"] = {"200": {**done, "headers": headers}, **_refusals(is_act=True)}
    return made


def _of_read(read: Read, schemas: Schemas) -> Schema:
    given = [*_in_path(read.path_parameters), *_in_query(read.parameters)]
    made = _operation(read.name, read.role, given)
    if is_lines(read.answer):
        content = {LINES: {"schema": {"type": "string"}}}
        made["responses"] = {"200": {"description": "lines of JSON", "content": content}}
    else:
        found = {"description": "what was found", "content": _json(schemas.answer(read.answer))}
        unchanged = {"description": "it has not changed since the ETag in If-None-Match"}
        made["responses"] = {"200": {**found, "headers": _READ_HEADERS}, "304": unchanged}
    made["responses"] |= _refusals(is_act=False)
    return made


def _of_stream(stream: Stream, schemas: Schemas) -> Schema:
    given = [*_in_path(stream.path_parameters), *_in_query(stream.parameters)]
    made = _operation(stream.name, stream.role, given)
    made["summary"], made["description"] = stream.summary, stream.about
    if stream.resumes:
        made["parameters"].append(_LAST_EVENT)
    content = {
        EVENTS: {"schema": {"type": "string"}, "x-penstock-data": schemas.answer(stream.answer)}
    }
    made["responses"] = {
        "200": {"description": "server-sent events, until either side ends it", "content": content},
        **_refusals(is_act=False),
    }
    return made


_READ_HEADERS = {
    "ETag": {"schema": {"type": "string"}, "description": "send it back as If-None-Match"},
    "Link": {
        "schema": {"type": "string"},
        "description": "the path of the next page, if there is one",
    },
}
_LAST_EVENT = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "the `id` of the last event received: the stream continues after it",
    "schema": {"type": "string", "maxLength": 2000},
}


def _operation(name: str, role: str, parameters: list[Schema]) -> Schema:
    noun, _, _ = name.rpartition(".")
    made: Schema = {
        "operationId": name.rstrip("_"),
        "tags": [noun or "project"],
        "parameters": parameters,
        ROLE: str(role),
    }
    if name not in STREAMS:
        summary, _, rest = (inspect.getdoc(verb_of(name)) or name).partition("\n")
        made["summary"] = summary
        if rest.strip():
            made["description"] = rest.strip()
    return made


def _in_path(kind: Any) -> Iterator[Schema]:
    for name, schema in properties_of(kind)[0].items():
        at_least = {"minLength": 1} if schema.get("type") == "string" else {}
        yield {"name": name, "in": "path", "required": True, "schema": {**schema, **at_least}}


def _in_query(kind: Any) -> Iterator[Schema]:
    found, required = properties_of(kind)
    for name, schema in found.items():
        yield {"name": name, "in": "query", "required": name in required, "schema": schema}


def _json(schema: Schema) -> Schema:
    return {JSON: {"schema": schema}}


def _refusals(*, is_act: bool) -> Schema:
    return {
        str(status): {"$ref": f"#/components/responses/Refused{status}"}
        for status in REFUSALS
        if is_act or status not in OF_ACTS_ALONE
    }


def _refusal(status: int) -> Schema:
    made: Schema = {
        "description": REFUSALS[status],
        "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status in (429, 503):
        made["headers"] = {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}}
    return made


def _security(cookie: str) -> Schema:
    return {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "a token of `penstock token create`; its role says what it may do",
        },
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": cookie,
            "description": "a browser's session; acts need its CSRF token in X-CSRF-Token, too",
        },
    }


def _nouns() -> Sequence[str]:
    names = (*ACTS, *READS, *STREAMS)
    return sorted({name.rpartition(".")[0] or "project" for name in names})
