"""Whether an answer asks for a pause, and for how long: pure.

A 429 or 503 always does. So does a 403 that says so: APIs answer it to whoever asks too often, and mean
neither the credentials nor the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from penstock.http.retry_after import LONGEST, retry_after_s, within

CLOSING = frozenset({429, 503})
_REFUSED = 403
# How long one stays away that answers 403 and names no time: GitHub asks for a minute at least.
REFUSED_S = 60.0
_SPENT = ("x-ratelimit-remaining", "ratelimit-remaining", "x-rate-limit-remaining")
_RESET = (
    "x-ratelimit-reset-after",
    "x-ratelimit-reset",
    "ratelimit-reset",
    "x-rate-limit-reset",
)
# The two forms of the IETF's drafts: `"default";r=0;t=30`, and `limit=10, remaining=0, reset=30`.
_DRAFT = "ratelimit"
_DRAFT_SPENT = re.compile(r"(?:^|[;,\s])(?:r|remaining)\s{0,9}=\s{0,9}0(?![0-9])")
_DRAFT_RESET = re.compile(r"(?:^|[;,\s])(?:t|reset)\s{0,9}=\s{0,9}([0-9]{1,15})")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
# Seconds since the epoch are beyond this number, seconds from now are below it.
_EPOCH = 100_000_000
_EPOCH_MS = 1_000_000_000_000
# What is said in the body alone, as by GitHub ("secondary rate limit") and Google ("rateLimitExceeded").
_SAID = re.compile(rb"rate[ _-]?limit|abuse detection", re.IGNORECASE)
_LOOKED_AT = 2_048


def is_throttle(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether this answer asks for a pause instead of answering."""
    if status in CLOSING:
        return True
    return status == _REFUSED and (
        bool(headers.get("retry-after")) or _is_spent(headers) or _is_said(headers, body)
    )


def pause_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until it may be asked again, between a second and an hour; None if no time is named."""
    asked = retry_after_s(headers.get("retry-after", ""), now)
    return renewal_s(headers, now) if asked is None else asked


def renewal_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until a limit without a request left is renewed; None if it has some, or names no time."""
    if not _is_spent(headers):
        return None
    draft = _DRAFT_RESET.search(headers.get(_DRAFT, "")[:_LOOKED_AT].lower())
    reset = draft[1] if draft else ""
    reset = reset or next((headers[name] for name in _RESET if name in headers), "").strip()
    found = _NUMBER.fullmatch(reset)
    if found is None:
        return None
    seconds = float(reset) / (1000 if float(reset) > _EPOCH_MS else 1)
    # By the clock of the server, where it shows it: ours may be another.
    return within(seconds - _date(headers, now) if seconds > _EPOCH else seconds)


def _is_spent(headers: Mapping[str, str]) -> bool:
    draft = _DRAFT_SPENT.search(headers.get(_DRAFT, "")[:_LOOKED_AT].lower())
    return draft is not None or any(headers.get(name, "").strip() == "0" for name in _SPENT)


def _is_said(headers: Mapping[str, str], body: bytes) -> bool:
    is_json = "json" in headers.get("content-type", "")[:100].lower()
    return is_json and _SAID.search(body[:_LOOKED_AT]) is not None


def _date(headers: Mapping[str, str], now: float) -> float:
    text = headers.get("date", "")
    if not text or len(text) > LONGEST:
        return now
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return now
