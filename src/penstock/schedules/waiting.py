"""Waiting: schedules that are not due by time, but when something has happened."""

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


@dataclass(frozen=True, slots=True)
class After:
    """Due when all of these sources have run since it ran last."""

    sources: tuple[str, ...]

    def next_due(self, after: float) -> float | None:
        return None

    def words(self) -> str:
        return f"after {' and '.join(self.sources)}"


@dataclass(frozen=True, slots=True)
class OnFiles:
    """Due when files that match have landed."""

    pattern: str

    def next_due(self, after: float) -> float | None:
        return None

    def words(self) -> str:
        return f"when files land in {self.pattern}"
