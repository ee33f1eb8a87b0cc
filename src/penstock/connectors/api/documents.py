"""Documents: the records of a page, each by its key."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from penstock.connectors.api.answers import kind_of
from penstock.connectors.contract import Document, Tombstone
from penstock.connectors.jsonpath import JsonPath
from penstock.jobs.failures import BadData

LONGEST_TEXT = 1_000_000
LONGEST_TITLE = 500
LONGEST_KEY = 2_000
_TITLES = ("title", "name", "full_name", "subject", "label", "headline", "display_name")
_TEXTS = ("text", "body", "content", "description", "summary", "message")
_encode = msgspec.json.Encoder(order="deterministic").encode


def content_of(records: list[Any]) -> list[str]:
    """The fingerprint of each record: equal for equal JSON."""
    return [hashlib.sha256(_encode(each)).hexdigest() for each in records]


def documents_of(
    records: list[Any],
    marks: list[str],
    keys: tuple[JsonPath, ...],
    deleted: JsonPath | None,
    at: JsonPath,
) -> Iterator[Document | Tombstone]:
    """A document for each record; BadData where one has no key, or two have the same.

    A record that stands there twice, all equal, is one. `marks` are the fingerprints of the records.
    """
    seen: dict[str, str] = {}
    plain = keys[0].selectors[0] if len(keys) == 1 and len(keys[0].selectors) == 1 else None
    for number, (record, mark) in enumerate(zip(records, marks, strict=True), 1):
        if not isinstance(record, dict):
            raise BadData(
                f"record {number} of {at} is {kind_of(record)}, not an object", cause="no object"
            )
        found = record.get(plain) if isinstance(plain, str) else None
        if type(found) is int or (type(found) is str and found):
            key = str(found)
        else:
            key = _key(record, keys, number, at)
        known = seen.setdefault(key, mark)
        if known is not mark:
            if known == mark:
                continue
            raise _twice(key, keys)
        if deleted is not None and deleted.first(record):
            yield Tombstone(key)
        else:
            yield Document(
                key=key,
                kind="record",
                title=_text(record, _TITLES, LONGEST_TITLE),
                text=_text(record, _TEXTS, LONGEST_TEXT),
                data=record,
                fingerprint=mark,
            )


def _text(record: dict[str, Any], names: tuple[str, ...], longest: int) -> str:
    for name in names:
        found = record.get(name)
        if type(found) is str and found:
            return found[:longest]
    return ""


def _key(record: dict[str, Any], keys: tuple[JsonPath, ...], number: int, at: JsonPath) -> str:
    parts = [_part(record, path, number, at) for path in keys]
    if len(parts) == 1:
        return parts[0]
    # So that no two records have one key: what separates the parts is not in them.
    return "/".join(quote(part, safe=" :@+,;=!$&'()*~") for part in parts)


def _part(record: dict[str, Any], path: JsonPath, number: int, at: JsonPath) -> str:
    value = path.first(record)
    if isinstance(value, str) and value and len(value) <= LONGEST_KEY:
        return value
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and math.isfinite(value):
        return str(value)
    names = ", ".join(str(name) for name in list(record)[:12]) or "no fields"
    what = "has no" if value is None else f"has {kind_of(value)} as its"
    if isinstance(value, str) and value:
        what = f"has more than {LONGEST_KEY:,} characters as its"
    raise BadData(
        f"record {number} of {at} {what} {str(path).removeprefix('$.')}, which makes its key; name the field "
        f"that does: key: FIELD (it has {names})",
        cause="no key",
    )


def _twice(key: str, keys: tuple[JsonPath, ...]) -> BadData:
    names = " and ".join(str(path).removeprefix("$.") for path in keys)
    return BadData(
        f"two different records of a page have the key {key!r:.100}; {names} does not tell them apart, name "
        "more fields: key: [FIELD, FIELD]",
        cause="keys are not unique",
    )
