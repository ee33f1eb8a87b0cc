"""Requests to providers as data, and how a caller's fetch sends them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from penstock.builder.normalize.text import clean

Fetch = Callable[..., Awaitable[Any]]
LONGEST_QUERY = 300


LONGEST_ANSWER = 500_000
LONGEST_PAGE = 2_000_000


class Ask(msgspec.Struct, frozen=True):
    """One request. A secret travels in a header: addresses are logged and kept."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: bytes | None = None
    # So much of a budget of bytes is reserved before it is sent, and others wait for it; None: as the source
    # has it.
    max_bytes: int | None = LONGEST_ANSWER

    def __repr__(self) -> str:
        return f"Ask({self.method} {self.url})"


async def answer_to(fetch: Fetch, ask: Ask) -> Any:
    """Send it with the caller's fetch, and read the answer as JSON."""
    more = {"method": ask.method, "body": ask.body} if ask.body is not None else {}
    response = await fetch(ask.url, headers=ask.headers or None, **more)
    return response.json()


def with_query(base_url: str, path: str, **fields: Any) -> str:
    """The address of a provider's endpoint; fields that are None are left out."""
    kept = {name: str(value)[:LONGEST_QUERY] for name, value in fields.items() if value is not None}
    between = "&" if urlsplit(base_url).query else "?"
    return f"{base_url.rstrip('/')}{path}{between}{urlencode(kept, quote_via=quote)}"


def words_of(company: Mapping[str, Any], *fields: str) -> str | None:
    """The values of these fields as one query; None if there is none."""
    found = [text for field in fields if (text := clean(company.get(field)))]
    return " ".join(found)[:LONGEST_QUERY] or None


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one: answers of others may hold anything."""
    return value if isinstance(value, dict) else {}


def rows(value: Any, most: int = 50) -> list[dict[str, Any]]:
    """The objects of a list, at most so many; nothing if it is none."""
    return (
        [each for each in value[:most] if isinstance(each, dict)] if isinstance(value, list) else []
    )
