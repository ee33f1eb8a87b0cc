"""How long a server asks us to stay away."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

DEFAULT_S = 30.0
LEAST_S = 1.0
MOST_S = 3600.0
LONGEST = 64
_READ = 1024


def retry_after_s(header: str, now: float) -> float | None:
    """Seconds to wait by a Retry-After header, between a second and an hour; None if it says nothing.

    Takes both forms, seconds and an HTTP date; whatever else is in there is as if it were absent.
    """
    text = header[:_READ].strip()
    if text.isascii() and text.isdecimal():
        return within(float(text[:12]))
    if len(text) > LONGEST:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return within(moment.timestamp() - now)


def within(seconds: float) -> float:
    """A pause that nobody can make endless."""
    return min(MOST_S, max(LEAST_S, seconds))
