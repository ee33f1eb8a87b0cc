"""When a page was changed last, as its site says; pure, and trusting only as far as it is safe."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# A time that names no zone may be any zone's: at the latest this much later than if it were UTC.
WESTMOST_S = 12 * 3600.0
LONGEST = 64
# Before what names a state and not a time: a connector's own mark of an item, whatever it is made of.
FINGERPRINT = "fingerprint:"
_YEAR = re.compile(r"(\d{4})", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_DAY = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})", re.ASCII)


def span_of(text: str) -> tuple[float, float] | None:
    """The time that this names, from when until when it may have been; None for what names none.

    W3C dates as sitemaps have them, from a year to a fraction of a second, and what is written instead:
    other ISO forms, and dates as mail has them.
    """
    text = text.strip()
    if not text or len(text) > LONGEST:
        return None
    try:
        return _date(text) or _moment(text)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def is_older(announced: str, done_announced: str, done_at: float) -> bool:
    """Whether a page is surely as it was when it was fetched at `done_at`, by its announcements alone.

    A fingerprint is the same one. Of times, what is announced now is not newer than what was announced
    then, and the time it names had passed when the page was fetched: a day names all its hours, and a
    time in the future names nothing.
    """
    if announced.startswith(FINGERPRINT):
        return announced != FINGERPRINT and announced == done_announced
    now_said, then_said = span_of(announced), span_of(done_announced)
    if now_said is None or then_said is None:
        return False
    return now_said[0] <= then_said[0] and now_said[1] <= done_at


def _date(text: str) -> tuple[float, float] | None:
    if found := _DAY.fullmatch(text):
        first = _at(*map(int, found.groups()))
        return first, first + 86400.0 + WESTMOST_S
    if found := _MONTH.fullmatch(text):
        year, month = map(int, found.groups())
        after = _at(year + month // 12, month % 12 + 1, 1)
        return _at(year, month, 1), after + WESTMOST_S
    if found := _YEAR.fullmatch(text):
        year = int(found.group(1))
        return _at(year, 1, 1), _at(year + 1, 1, 1) + WESTMOST_S
    return None


def _at(year: int, month: int, day: int) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp()


def _moment(text: str) -> tuple[float, float]:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = parsedate_to_datetime(text)
    # Seconds that are not written may be any of the minute's.
    length_s = 60.0 if text.count(":") < 2 else 1.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
        length_s += WESTMOST_S
    first = moment.timestamp()
    return first, first + length_s
