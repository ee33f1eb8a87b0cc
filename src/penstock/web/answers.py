"""Bodies that are read and answers that are given: JSON, whole and in time."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

BODY_S = 10.0


async def json_body(request: web.Request) -> Any:
    """What the request says; None if it says nothing."""
    try:
        async with asyncio.timeout(BODY_S):
            body = await request.read()
    except TimeoutError:
        raise refusal(web.HTTPRequestTimeout, "the body did not arrive in time") from None
    except web.HTTPRequestEntityTooLarge:
        raise refusal(_TooLarge, "the body is too large") from None
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise refusal(web.HTTPBadRequest, "the body is not JSON") from None


class _TooLarge(web.HTTPClientError):
    status_code = 413


def refusal(
    kind: type[web.HTTPError], error: str, headers: dict[str, str] | None = None
) -> web.HTTPError:
    """An answer to be raised: no, and why."""
    text = msgspec.json.encode({"error": error}).decode()
    return kind(text=text, content_type="application/json", headers=headers)


def json_answer(status: int, answer: dict[str, object]) -> web.Response:
    """An answer to be returned."""
    text = msgspec.json.encode(answer).decode()
    return web.Response(status=status, text=text, content_type="application/json")
