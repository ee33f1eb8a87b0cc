"""Times of changes: read from records, kept as a checkpoint, and written as the API wants them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from penstock.connectors.api.keys import ApiSinceKeys
from penstock.connectors.jsonpath import JsonPath, compile_path
from penstock.jobs.failures import BadData

PARTITION = "since"
# Numbers beyond this are milliseconds since the epoch, those below it seconds.
_MS = 100_000_000_000
_END_S = 253_402_300_799.0


def moment_of(value: Any, is_number: bool) -> float | None:
    """The time of a change in seconds, or the number itself; None for what is neither."""
    if isinstance(value, str):
        return _number(value) if is_number else _moment(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    if is_number:
        return float(value)
    return value / 1000 if abs(value) > _MS else float(value)


def _moment(text: str) -> float | None:
    """A time without a zone is taken for UTC."""
    number = _number(text)
    if number is not None:
        return moment_of(number, is_number=False)
    try:
        found = datetime.fromisoformat(text.strip()[:64])
        return found.replace(tzinfo=found.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text.strip()[:40])
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def latest(records: list[Any], since: ApiSinceKeys) -> float | None:
    """The latest change among the records of a page; BadData if none of them has a time that can be read."""
    path: JsonPath = compile_path(since.field)
    is_number = since.format == "number"
    found = [moment_of(path.first(each), is_number) for each in records]
    known = [each for each in found if each is not None and abs(each) <= _END_S * 1000]
    if records and not known:
        name = since.field.removeprefix("$.")
        raise BadData(
            f"no record of the page has a time of its last change at {name}; where is it? since: "
            "{field: PATH}",
            cause="no time of change",
        )
    return max(known, default=None)


def cursor_of(high: float, since: ApiSinceKeys) -> str | float:
    """As the checkpoint has it: people read it, and may rewind it."""
    if since.format == "number":
        return int(high) if high == int(high) else high
    return _utc(high).isoformat(timespec="microseconds").replace("+00:00", "Z")


def known_high(cursor: Any, since: ApiSinceKeys) -> float | None:
    return moment_of(cursor, since.format == "number")


def written(high: float, since: ApiSinceKeys) -> str:
    """What is asked for after `high` is known, with the overlap, in the words of the API."""
    if since.format == "number":
        return str(int(high) if high == int(high) else high)
    at = max(0.0, high - since.overlap)
    if since.format == "unix":
        return str(math.floor(at))
    if since.format == "unix_ms":
        return str(math.floor(at * 1000))
    moment = _utc(at)
    if since.format == "date":
        return moment.date().isoformat()
    if since.format == "iso":
        return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
    return moment.strftime(since.format)


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(max(0.0, min(seconds, _END_S)), UTC)
