"""Landed files: which files of a folder have landed: they are new or have changed, and are at rest.

Events are hints. What counts is what a look finds: a stamp for each file, made of its size and its time of
change. A file that is still being written has another stamp at the next look, and is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# A burst that does not end is not waited for longer than so many times the debounce.
LONGEST_BURST = 10
MOST_AT_ONCE = 10_000


@dataclass(slots=True)
class _Arrival:
    stamp: str
    since: float


class LandedFiles:
    """What is known of one folder: what has landed before, and what is on its way."""

    def __init__(self, debounce_s: float, landed: Mapping[str, str]) -> None:
        self._debounce_s = debounce_s
        self._landed = dict(landed)
        self._arriving: dict[str, _Arrival] = {}
        self._burst_since = 0.0
        self._looks = 0

    @property
    def is_waiting(self) -> bool:
        """Whether something is on its way, so that the next look should be soon."""
        return bool(self._arriving)

    def is_settling(self, now: float) -> bool:
        """Whether something is on its way, and no longer than a burst is waited for.

        It takes two looks to see that something is at rest, however long the second one takes to come.
        """
        is_long = now - self._burst_since >= LONGEST_BURST * self._debounce_s
        return self.is_waiting and (self._looks < 2 or not is_long)

    def look(self, found: Mapping[str, str], now: float) -> dict[str, str]:
        """What has landed by now, all of it together, when nothing has moved for as long as the debounce."""
        had_any = bool(self._arriving)
        self._arriving = {path: one for path, one in self._arriving.items() if path in found}
        for path, stamp in found.items():
            known = self._arriving.get(path)
            if self._landed.get(path) == stamp:
                self._arriving.pop(path, None)
            elif known is None or known.stamp != stamp:
                self._arriving[path] = _Arrival(stamp, now)
        if not had_any:
            self._burst_since, self._looks = now, 0
        self._looks += 1
        at_rest = {
            path: one.stamp
            for path, one in self._arriving.items()
            if now - one.since >= self._debounce_s
        }
        is_long = now - self._burst_since >= LONGEST_BURST * self._debounce_s
        if len(at_rest) < len(self._arriving) and not is_long:
            return {}
        return {path: at_rest[path] for path in sorted(at_rest)[:MOST_AT_ONCE]}

    def gone(self, found: Mapping[str, str]) -> list[str]:
        """What had landed and is no longer there."""
        return [path for path in self._landed if path not in found]

    def forget(self, paths: list[str]) -> None:
        for path in paths:
            self._landed.pop(path, None)

    def has_landed(self, files: Mapping[str, str]) -> None:
        """These are dealt with."""
        self._landed.update(files)
        for path in files:
            self._arriving.pop(path, None)
