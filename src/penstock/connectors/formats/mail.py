"""E-mail files: headers, the text that people read, and what is attached.

By the older interface of `email`: the newer one makes a tree of each header, which takes far longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

from penstock.connectors.formats.html import read_html
from penstock.connectors.formats.parsed import Parsed, clean, one_line

MOST_PARTS = 1_000
MOST_REFERENCES = 20_000
# What is read of a header: a longer one is no help to anybody.
LONGEST_HEADER = 20_000
_MESSAGE_ID = re.compile(r"<[^<>\s]{1,500}>")
_ADDRESSES = ("from", "to", "cc", "reply-to")
# Where the headers of a message end whose line ends are all alike, and one header with all of its lines.
_HEAD_END = re.compile(b"\r\n\r\n|\n\n")
_HEADERS = {
    end: re.compile(rf"(([!-9;-~]+):[ \t]*([^\r\n]*(?:{end}[ \t][^\r\n]*)*){end})")
    for end in ("\r\n", "\n")
}
# `Ada Lovelace <ada@example.com>` and `ada@example.com`, in which nothing is quoted.
_PLAIN_ADDRESS = re.compile(
    r"(?:[A-Za-z0-9 ._'-]*<)?([A-Za-z0-9_+=-]+(?:\.[A-Za-z0-9_+=-]+)*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)(>?)"
)
# A part that is text and nothing else, and how it may be sent to be read as it is.
_PLAIN_TEXT = re.compile(
    r'\s*text/plain\s*(?:;\s*charset\s*=\s*"?([A-Za-z0-9_.:-]+)"?\s*)?(?:;\s*format\s*=\s*"?flowed"?\s*)?',
    re.IGNORECASE,
)
_AS_WRITTEN = frozenset({"7bit", "8bit"})
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_USUAL_DATE = re.compile(
    rf"(?:[A-Z][a-z]{{2}}, )?(\d\d?) ({'|'.join(MONTHS)}) ([1-9]\d{{3}}) (\d\d):(\d\d):(\d\d) "
    r"([+-])(0\d|1[0-4])([0-5]\d)(?: \([A-Z]{1,5}\))?"
)

Split = tuple[list[tuple[str, str]], bytes]


def read_mail(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    headers, text, attached = content_of(body)
    meta: dict[str, Any] = {
        field: found for field in _ADDRESSES if (found := addresses_of(headers.get(field, "")))
    }
    for field in ("message-id", "in-reply-to"):
        if identity := one_line(headers.get(field, ""), 2_000):
            meta[field.replace("-", "_")] = identity
    if references := _MESSAGE_ID.findall(headers.get("references", "")[:MOST_REFERENCES]):
        meta["references"] = references[-100:]
    if thread := [*references[:1], *_ids(meta, "in_reply_to"), *_ids(meta, "message_id")]:
        meta["thread"] = thread[0]
    if date := date_of(headers.get("date", "")):
        meta["date"] = date
    if attached:
        meta["attachments"] = attached
    subject = one_line(_words(headers.get("subject", "")), 2_000)
    return Parsed(kind="email", title=subject or name, text=text, meta=meta)


def content_of(body: bytes) -> tuple[dict[str, str], str, list[dict[str, Any]]]:
    """The headers, the text that people read, and what is attached; most mail has one plain text alone."""
    split = _split(body)
    if split is not None:
        headers = headers_of(split[0])
        text = plain_text(headers, split[1])
        if text is not None:
            return headers, text, []
    message = _message(split) or message_from_bytes(body)
    if not message.keys():
        raise ValueError("it has no headers")
    return headers_of(message.raw_items()), *parts_of(message)


def plain_text(headers: Mapping[str, str], content: bytes) -> str | None:
    """The text of a message that has nothing else, as it is written; None for all others."""
    encoding = headers.get("content-transfer-encoding", "7bit").lower()
    if "content-disposition" in headers or encoding not in _AS_WRITTEN:
        return None
    kind = _PLAIN_TEXT.fullmatch(headers.get("content-type", "text/plain"))
    if kind is None:
        return None
    return _decoded(content, kind[1])


def message_of(body: bytes) -> Message:
    """The message as `email` parses it, in a fraction of its time where it has one part and sound headers."""
    return plain_message(body) or message_from_bytes(body)


def plain_message(body: bytes) -> Message | None:
    """A message of one part and sound headers, without `email`'s parser; None for all others."""
    return _message(_split(body))


def _message(split: Split | None) -> Message | None:
    if split is None:
        return None
    message = Message()
    for name, value in split[0]:
        message.set_raw(name, value)
    if message.get_content_maintype() in ("multipart", "message"):
        return None
    message.set_payload(split[1].decode("ascii", "surrogateescape"))
    return message


def _split(body: bytes) -> Split | None:
    """The headers of a message whose headers are sound, and what follows them."""
    end = _HEAD_END.search(body)
    if end is None:
        return None
    line_end = "\n" if len(end[0]) == 2 else "\r\n"
    head = body[: end.start()].decode("ascii", "surrogateescape") + line_end
    found = _HEADERS[line_end].findall(head)
    if not found or sum([len(whole) for whole, _, _ in found]) != len(head):
        return None
    return [(name, value) for _, name, value in found], body[end.end() :]


def headers_of(items: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """The first of each name, as it is written: headers of real mail are broken in every way."""
    found: dict[str, str] = {}
    for field, value in items:
        text = str(value)[:LONGEST_HEADER]
        found.setdefault(field.lower(), text if text.isascii() else _readable(text))
    return found


def _readable(raw: str) -> str:
    """Bytes that are no ASCII are mostly UTF-8, against the rules."""
    if raw.isascii():
        return raw
    content = raw.encode("utf-8", "surrogateescape")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _words(text: str) -> str:
    """The text of a header with its encoded words decoded, as far as they can be."""
    if "=?" not in text:
        return text
    try:
        parts = decode_header(text)
    except (ValueError, LookupError, MessageError):
        return text
    return "".join(
        part if isinstance(part, str) else _decoded(part, charset or "latin-1")
        for part, charset in parts
    )


def _ids(meta: dict[str, Any], field: str) -> list[str]:
    return _MESSAGE_ID.findall(meta.get(field, ""))


def addresses_of(header: str) -> list[str]:
    """The addresses in a header, without the names of people."""
    if not header:
        return []
    plain = _PLAIN_ADDRESS.fullmatch(header)
    if plain is not None and bool(plain[2]) == ("<" in header):
        return [plain[1]]
    return [clean(address) for _, address in getaddresses([header]) if address][:1000]


def date_of(header: str) -> str:
    usual = _USUAL_DATE.fullmatch(header)
    try:
        if usual is not None:
            return _moment(usual)
        moment = parsedate_to_datetime(header)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _moment(found: re.Match[str]) -> str:
    """Of a date as nearly all mail has it, in UTC."""
    day, month, year, hour, minute, second, sign, hours, minutes = found.groups()
    moment = datetime(
        int(year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second), 0, UTC
    )
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return (moment - offset if sign == "+" else moment + offset).isoformat()


def parts_of(message: Message) -> tuple[str, list[dict[str, Any]]]:
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
        if _is_attached(part):
            attached.append({"name": _file_name(part), "type": kind, "bytes": len(content)})
        elif kind == "text/html" and not html:
            html = read_html(content, "", "", str(part.get("content-type", ""))).text
        elif not plain:
            plain = _decoded(content, part.get_content_charset())
    return plain or html, attached


def attachments_of(body: bytes, most: int) -> Iterator[tuple[str, str, bytes]]:
    """What is attached: name, content type and bytes of each."""
    message = message_of(body)
    for number, part in enumerate(message.walk()):
        if number >= MOST_PARTS or not most:
            return
        if part.is_multipart() or not _is_attached(part):
            continue
        most -= 1
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
        yield _file_name(part), one_line(str(part.get_content_type())), content


def _is_attached(part: Any) -> bool:
    is_attachment = part.get_content_disposition() == "attachment"
    return is_attachment or not part.get_content_type().startswith("text/")


def _file_name(part: Any) -> str:
    try:
        return one_line(_words(_readable(part.get_filename() or "")), 500)
    except (ValueError, LookupError, TypeError):
        return ""


def _decoded(content: bytes, charset: str | None) -> str:
    try:
        return content.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        return content.decode("utf-8", "replace")
