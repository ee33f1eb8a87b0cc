"""Signal: not by time, but when a named fact is raised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OnSignal:
    """Due when one of these signals is raised."""

    signals: tuple[str, ...]

    def next_due(self, after: float) -> float | None:
        return None

    def words(self) -> str:
        return f"on {' or '.join(self.signals)}"
