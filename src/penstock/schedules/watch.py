"""Watch: not by time, but when files have landed (which ones have, `landing.py` says)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OnFiles:
    """Due when files that match have landed."""

    pattern: str

    def next_due(self, after: float) -> float | None:
        return None

    def words(self) -> str:
        return f"when files land in {self.pattern}"
