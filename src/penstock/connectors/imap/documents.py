"""A message as a document: what people read, its thread, and the text of what is attached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.connectors.contract import Document
from penstock.connectors.formats.kinds import kind_of, parse
from penstock.connectors.formats.mail import attachments_of
from penstock.connectors.formats.parsed import MOST_TEXT, Parsed, clean
from penstock.http.charset import decoded
from penstock.jobs.failures import BadData, Permanent

if TYPE_CHECKING:
    from penstock.http.response import Response

FLAGS, RECEIVED = "x-imap-flags", "x-imap-received"
MOST_ATTACHMENTS = 50
# Formats whose text is worth having beside the message's own.
_UNREAD = frozenset({"binary", "email", "parquet"})
_AS_IT_IS = frozenset({"text", "csv", "json", "jsonl"})


def headers_of(flags: list[str], received: str) -> dict[str, str]:
    """What is stored with a message, so that a replay knows it too."""
    return {FLAGS: " ".join(flags), RECEIVED: received}


def document_of(key: str, response: Response, *, with_attachments: bool) -> Document:
    body = response.body
    parsed = _parsed(body, key)
    meta = {"bytes": len(body), **_about(key, response.headers), **parsed.meta}
    data = _attached(body) if with_attachments and "attachments" in meta else []
    return Document(
        key=key,
        kind="email",
        title=parsed.title,
        text=parsed.text,
        meta=meta,
        links=parsed.links,
        data={"attachments": data} if data else None,
        fingerprint=response.content_hash,
    )


def _parsed(body: bytes, key: str) -> Parsed:
    try:
        return parse("email", body, name=key)
    except BadData:
        # Not even one header: what can be read of it is still the message.
        return Parsed(kind="email", title=key, text=decoded(body, "")).bounded()


def _about(key: str, headers: Mapping[str, str]) -> dict[str, Any]:
    folder = key.rpartition("/")[0].rpartition("/")[0]
    meta: dict[str, Any] = {"folder": folder, "flags": headers.get(FLAGS, "").split()}
    if received := headers.get(RECEIVED, ""):
        meta["received"] = received
    return meta


def _text(kind: str, name: str, content: bytes) -> str:
    return parse(kind, content, name=name).text


def _attached(body: bytes) -> list[dict[str, Any]]:
    """The text of attachments, as far as their formats are known and they can be read."""
    found, left = [], MOST_TEXT
    for name, content_type, content in attachments_of(body, MOST_ATTACHMENTS):
        kind = kind_of(name, content, content_type)
        if kind in _UNREAD:
            continue
        about: dict[str, Any] = {"name": name, "kind": kind}
        try:
            # A table is text enough beside a message.
            is_text = kind in _AS_IT_IS
            text = clean(decoded(content, content_type)) if is_text else _text(kind, name, content)
        except (BadData, Permanent) as error:
            about["problem"] = clean(str(error))[:200]
        else:
            about["text"] = text[:left]
            left -= len(about["text"])
        found.append(about)
    return found
