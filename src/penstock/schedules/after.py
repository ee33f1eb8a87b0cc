"""After: not by time, but when other sources have completed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class After:
    """Due when all of these sources have run since it ran last."""

    sources: tuple[str, ...]

    def next_due(self, after: float) -> float | None:
        return None

    def words(self) -> str:
        return f"after {' and '.join(self.sources)}"
