"""How a refusal is sent: problem details as JSON (RFC 9457)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

if TYPE_CHECKING:
    from penstock.app.verbs.problems import Problem

MEDIA_TYPE = "application/problem+json"


def problem_response(problem: Problem) -> Response:
    body = msgspec.json.encode(problem.as_json())
    return Response(body, problem.status, problem.headers, MEDIA_TYPE)
