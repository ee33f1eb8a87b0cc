"""Moments of events: whole nanoseconds since the epoch, from whatever a provider writes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

SECOND_NS = 1_000_000_000
# What a number counts is told by its size: seconds until the year 5138, then milliseconds, and so on.
_UNITS = ((10**11, SECOND_NS), (10**14, 1_000_000), (10**17, 1_000), (2**63, 1))
_NUMBER = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,18})?")
_WRITTEN = re.compile(
    r"(\d{4}-?\d\d-?\d\d(?:[T ]\d\d:?\d\d(?::?\d\d)?)?)(?:[.,](\d{1,12}))?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII | re.IGNORECASE,
)
_LAST_NS = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * SECOND_NS


def moment_ns(value: Any) -> int:
    """The moment that a provider names: a number since the epoch, or a date; without a zone it is UTC.

    ValueError if it names none.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{value!r:.40} is no time")
    text = repr(value) if isinstance(value, float) else str(value).strip()
    found = _counted(text) if _NUMBER.fullmatch(text) and len(text) != 8 else _written(text)
    if not 0 <= found <= _LAST_NS:
        raise ValueError(f"{text:.40} is no time")
    return found


def _counted(text: str) -> int:
    whole, _, fraction = text.partition(".")
    number = int(whole)
    unit_ns = next((unit for bound, unit in _UNITS if abs(number) < bound), 1)
    part = int((fraction + "0" * 9)[:9]) * unit_ns // SECOND_NS if fraction else 0
    return number * unit_ns + part


def _written(text: str) -> int:
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text:.40} is no time")
    whole, fraction, zone = found.groups()
    moment = datetime.fromisoformat(whole + (zone or "").upper())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * SECOND_NS + int(((fraction or "") + "0" * 9)[:9])


def written(at_ns: int, *, is_exact: bool) -> str:
    """`2026-11-02T14:30:00Z`; exact, with nine digits of the second, so that texts sort as moments do."""
    seconds, rest = divmod(at_ns, SECOND_NS)
    shown = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    if len(shown) < 19:
        shown = shown.rjust(19, "0")
    return f"{shown}.{rest:09d}Z" if is_exact or rest else f"{shown}Z"


def seconds(at_ns: int) -> float:
    return at_ns / SECOND_NS
