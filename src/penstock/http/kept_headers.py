"""Which headers of an answer are kept: pure.

All that is kept goes into memory, the snapshot and the database, so a server does not decide how much.
"""

from __future__ import annotations

from collections.abc import Iterable

# Of one header with all its repetitions; a longer one is left out: half an ETag is a wrong one.
MAX_HEADER = 8_192
MAX_HEADERS_KEPT = 32_768
# Penstock reads these itself, so they go before all others.
_NEEDED = frozenset(
    "content-encoding content-language content-type date etag last-modified link location retry-after "
    "x-ratelimit-remaining x-ratelimit-reset".split()
)
SET_COOKIE, HIDDEN = "set-cookie", "***"
_AROUND = len(": \r\n")


def keep_headers(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, str], int]:
    """The headers by their names in lower case, and how many bytes all of them were."""
    received = 0
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        received += len(name) + len(value) + _AROUND
        values.setdefault(name.lower(), []).append(value)
    joined = {name: ", ".join(each) for name, each in values.items()}
    if received <= MAX_HEADER:
        return joined, received
    return _within(joined), received


def without_cookies(headers: dict[str, str]) -> dict[str, str]:
    """The headers as they are stored: that there were cookies is seen, and not which."""
    return {**headers, SET_COOKIE: HIDDEN} if SET_COOKIE in headers else headers


def _within(headers: dict[str, str]) -> dict[str, str]:
    room = MAX_HEADERS_KEPT
    kept = set()
    for name in sorted(headers, key=lambda name: name not in _NEEDED):
        size = len(name) + len(headers[name]) + _AROUND
        if len(headers[name]) <= MAX_HEADER and size <= room:
            kept.add(name)
            room -= size
    return {name: value for name, value in headers.items() if name in kept}
