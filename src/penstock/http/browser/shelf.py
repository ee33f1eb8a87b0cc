"""The shelf: scripts and styles that many pages of a source share are fetched once, as a browser does.

Only what its server says may be kept, for as long as that says, and never what came with a cookie.
"""

from __future__ import annotations

import re
from collections import OrderedDict

from penstock.clock import Clock
from penstock.http.response import Response

MOST_BYTES = 32_000_000
LONGEST_S = 3600.0
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=([0-9]{1,9})")


class Shelf:
    """The newest answers of one worker, by source and address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[float, Response]] = OrderedDict()
        self._bytes = 0

    def get(self, source: str, url: str) -> Response | None:
        found = self._kept.get((source, url))
        if found is None or found[0] <= self._clock.monotonic():
            return None
        self._kept.move_to_end((source, url))
        return found[1]

    def put(self, source: str, url: str, response: Response) -> None:
        fresh_s = fresh_for_s(response)
        if fresh_s <= 0.0 or len(response.body) > MOST_BYTES // 4:
            return
        self._drop((source, url))
        self._kept[source, url] = (self._clock.monotonic() + fresh_s, response)
        self._bytes += len(response.body)
        while self._bytes > MOST_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, str]) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= len(found[1].body)


def fresh_for_s(response: Response) -> float:
    """How long an answer may be used again, by its own words."""
    control = response.headers.get("cache-control", "").lower()
    if response.status != 200 or response.cookies or "vary" in response.headers:
        return 0.0
    if any(word in control for word in ("no-store", "no-cache", "private")):
        return 0.0
    age = _MAX_AGE.search(control)
    return min(LONGEST_S, float(age[1])) if age else 0.0
