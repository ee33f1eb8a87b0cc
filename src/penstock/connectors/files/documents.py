"""The document of a file, wherever its bytes come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.connectors.contract import Document
from penstock.connectors.formats.kinds import kind_of, parse
from penstock.connectors.formats.parsed import Parsed

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

# To parse less takes no longer than to go to a thread and back; plain text is decoded, and no more.
SMALL, SMALL_PLAIN = 16_384, 131_072
_PLAIN = ("text", "binary")


Read = Callable[[str, bytes], Parsed]


def _read(name: str, body: bytes) -> Parsed:
    return parse(kind_of(name, body), body, name=name)


async def document_of_file(
    ctx: Context, key: str, response: Response, read: Read = _read
) -> Document:
    """By its name and its bytes."""
    body, name = response.body, key.rpartition("/")[2]
    if _is_small(name, body):
        parsed = read(name, body)
    else:
        parsed = await ctx.in_thread(lambda: read(name, body))
    return Document(
        key=key,
        kind=parsed.kind,
        title=parsed.title,
        text=parsed.text,
        meta={"bytes": len(body), **parsed.meta},
        links=parsed.links,
        data=parsed.data,
        fingerprint=response.content_hash,
    )


def _is_small(name: str, body: bytes) -> bool:
    if len(body) <= SMALL:
        return True
    return len(body) <= SMALL_PLAIN and kind_of(name, body) in _PLAIN
