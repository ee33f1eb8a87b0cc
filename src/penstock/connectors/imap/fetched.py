"""Answers to FETCH as nearly all servers write them, read without taking apart each word.

Anything else is None, and imapclient's parser reads the whole answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
# A whole line, and one that a message follows; what comes behind that ends the line.
_LINE = re.compile(rb"(\d{1,10}) \((.*)\)")
_OPENED = re.compile(rb"(\d{1,10}) \((.*?) ?BODY\[\] \{\d{1,12}\}")
_PART = re.compile(
    rb" ?(?:UID (?P<uid>\d{1,10})|RFC822\.SIZE (?P<size>\d{1,12})|MODSEQ \((?P<modseq>\d{1,20})\)"
    rb"|FLAGS \((?P<flags>(?:\\?[A-Za-z0-9$_.-]+(?: \\?[A-Za-z0-9$_.-]+)*)?)\)"
    rb'|INTERNALDATE "(?P<date>[^"\\]{26})")'
)
_DATE = re.compile(
    rb"([ 0-3]\d)-(" + b"|".join(MONTHS) + rb")-([1-9]\d{3}) (\d\d):(\d\d):(\d\d) "
    rb"([+-])(0\d|1[0-4])([0-5]\d)"
)


def read_fetched(said: Iterable[Any]) -> dict[int, dict[bytes, Any]] | None:
    """What is said of each message, by its UID; None if some of it is written otherwise."""
    found: dict[int, dict[bytes, Any]] = {}
    parts = iter(said)
    for part in parts:
        line = _message(part, parts) if isinstance(part, tuple) else _listed(part)
        if line is None:
            return None
        text, about = line
        uid = _add(text, about)
        if uid is None:
            return None
        found.setdefault(uid, {}).update(about)
    return found


Line = tuple[bytes, dict[bytes, Any]]


def _listed(part: Any) -> Line | None:
    line = _LINE.fullmatch(part) if isinstance(part, bytes) else None
    return None if line is None else (line[2], {b"SEQ": int(line[1])})


def _message(part: tuple[bytes, bytes], parts: Iterator[Any]) -> Line | None:
    opened, end = _OPENED.fullmatch(part[0]), next(parts, None)
    if opened is None or not isinstance(end, bytes) or not end.endswith(b")"):
        return None
    return opened[2] + end[:-1], {b"SEQ": int(opened[1]), b"BODY[]": part[1]}


def _add(text: bytes, about: dict[bytes, Any]) -> int | None:
    """Put in what the text says, and answer with the UID; None if not all of it is understood."""
    at, uid = 0, None
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        kind, value = part.lastgroup, part[part.lastindex or 0]
        if kind == "uid":
            uid = int(value)
        elif kind == "flags":
            about[b"FLAGS"] = tuple(value.split())
        elif kind == "date":
            about[b"INTERNALDATE"] = moment = _moment(value)
            if moment is None:
                return None
        elif kind == "size":
            about[b"RFC822.SIZE"] = int(value)
        else:
            about[b"MODSEQ"] = (int(value),)
        at = part.end()
    return uid


def _moment(text: bytes) -> datetime | None:
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    day, month, year, hour, minute, second, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    zone = timezone(offset if sign == b"+" else -offset)
    number = MONTHS.index(month) + 1
    try:
        return datetime(int(year), number, int(day), int(hour), int(minute), int(second), 0, zone)
    except ValueError:  # such as the 31st of February
        return None
