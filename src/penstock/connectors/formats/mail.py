"""E-mail files: headers, the text that people read, and what is attached."""

from __future__ import annotations

from datetime import UTC
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

from penstock.connectors.formats.html import read_html
from penstock.connectors.formats.parsed import Parsed, clean, one_line

MOST_PARTS = 1_000
_ADDRESSES = ("from", "to", "cc", "reply-to")


def read_mail(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    message = message_from_bytes(body, policy=policy.default)
    if not isinstance(message, EmailMessage) or not message.keys():
        raise ValueError("it has no headers")
    meta: dict[str, Any] = {
        field: found for field in _ADDRESSES if (found := _addresses(message, field))
    }
    for field in ("message-id", "in-reply-to"):
        if text := _header(message, field):
            meta[field.replace("-", "_")] = text
    if date := _date(message):
        meta["date"] = date
    text, attached = _parts(message)
    if attached:
        meta["attachments"] = attached
    return Parsed(kind="email", title=_header(message, "subject") or name, text=text, meta=meta)


def _header(message: EmailMessage, name: str) -> str:
    """As far as it can be read: headers of real mail are broken in every way."""
    try:
        return one_line(str(message.get(name, "")), 2000)
    except (ValueError, LookupError, AttributeError, TypeError, IndexError):
        raw = dict(message.raw_items()).get(name.title(), "")
        return one_line(str(raw), 2000)


def _addresses(message: EmailMessage, name: str) -> list[str]:
    return [clean(address) for _, address in getaddresses([_header(message, name)]) if address][
        :1000
    ]


def _date(message: EmailMessage) -> str:
    try:
        moment = parsedate_to_datetime(_header(message, "date"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _parts(message: EmailMessage) -> tuple[str, list[dict[str, Any]]]:
    """The first plain text, else the first HTML as text; and what is attached."""
    plain, html, attached = "", "", []
    for number, part in enumerate(message.walk()):
        if number >= MOST_PARTS:
            break
        if part.is_multipart():
            continue
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
        kind = part.get_content_type()
        if part.get_content_disposition() == "attachment" or not kind.startswith("text/"):
            attached.append({"name": _file_name(part), "type": kind, "bytes": len(content)})
        elif kind == "text/html" and not html:
            html = read_html(content, "", "", str(part.get("content-type", ""))).text
        elif not plain:
            plain = _decoded(content, part.get_content_charset())
    return plain or html, attached


def _file_name(part: Any) -> str:
    try:
        return one_line(part.get_filename() or "", 500)
    except (ValueError, LookupError, TypeError):
        return ""


def _decoded(content: bytes, charset: str | None) -> str:
    try:
        return content.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        return content.decode("utf-8", "replace")
