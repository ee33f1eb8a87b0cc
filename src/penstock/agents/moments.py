"""Moments and durations as site schemas and params write them."""

from __future__ import annotations

from datetime import UTC, datetime


def written_at(seconds: float) -> str:
    """ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str | None) -> float | None:
    """Seconds since the epoch; None where nothing is written, or nothing that is a time."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def age_s(text: str | None, now: float) -> float | None:
    """How long ago it was; None for never."""
    at = seconds_of(text)
    return None if at is None else now - at
