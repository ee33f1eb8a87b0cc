"""Times as a person writes them: `2h` is so long ago, `2026-11-15` or `2026-11-15T08:00Z` is a date."""

from __future__ import annotations

from datetime import UTC, datetime

from penstock.errors import ConfigError, UsageError
from penstock.settings import parse_duration


def moment(option: str, text: str, now: float) -> float:
    """Seconds since the epoch; without an offset, a date is UTC. `option` is what an error calls it."""
    try:
        return now - parse_duration(text)
    except ConfigError:
        pass
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option} can't be {text!r}",
            "write it as 2h, 7d, 2026-11-15 or 2026-11-15T08:00Z",
            code="bad_moment",
        ) from None


def length(option: str, text: str) -> float:
    """Seconds of `30m` or `2h`."""
    try:
        return parse_duration(text)
    except ConfigError as error:
        raise UsageError(f"{option}: {error.message}", code="bad_length") from None
