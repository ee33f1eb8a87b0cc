"""Manual: only when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Manual:
    """Never due by itself."""

    def next_due(self, after: float) -> float | None:
        return None

    def words(self) -> str:
        return "by hand only"
