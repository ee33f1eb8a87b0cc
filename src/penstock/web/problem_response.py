"""How a refusal is sent: problem details as JSON (RFC 9457)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from penstock.app.verbs.acts import ACTS
from penstock.app.verbs.reads import READS

if TYPE_CHECKING:
    from penstock.app.verbs.problems import Problem
    from penstock.errors import Remedy

MEDIA_TYPE = "application/problem+json"
PREFIX = "/api/v1"


def problem_response(problem: Problem) -> Response:
    shown = problem.as_json()
    if problem.remedy is not None and problem.hint == str(problem.remedy):
        # A remedy without words of its own reads as a call in Python; here it is a request.
        shown["hint"] = request_of(problem.remedy)
    body = msgspec.json.encode({name: each for name, each in shown.items() if each != ""})
    return Response(body, problem.status, problem.headers, MEDIA_TYPE)


def request_of(remedy: Remedy) -> str:
    """The request that does what helps; empty if that is not served."""
    verb = ACTS.get(remedy.verb) or READS.get(remedy.verb)
    if verb is None:
        return ""
    path = verb.path
    if remedy.target is not None and verb.path_names:
        place = next(part for part in path.split("/") if part.startswith("{"))
        path = path.replace(place, quote(str(remedy.target), safe=""), 1)
    return f"{'POST' if remedy.verb in ACTS else 'GET'} {PREFIX}{path}"
