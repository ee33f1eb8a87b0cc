"""One rule's look at the history of a source, and what its findings have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from penstock.alerts.causes import suspected
from penstock.alerts.history import Finding, History, Number, Silence
from penstock.alerts.rules import RULES, Severity
from penstock.settings.alert_rules import Thresholds

T = TypeVar("T", bound=Thresholds)


@dataclass(frozen=True, slots=True)
class Look:
    """`standing_since` is when the alert of this rule opened, if one is open."""

    history: History
    thresholds: Thresholds
    now: float
    standing_since: float | None = None

    def by(self, kind: type[T]) -> T:
        """The thresholds, which are of this rule."""
        if not isinstance(self.thresholds, kind):
            raise TypeError(f"{self.thresholds!r} are not {kind.__name__}")
        return self.thresholds

    @property
    def is_standing(self) -> bool:
        return self.standing_since is not None

    def finding(
        self,
        rule: str,
        summary: str,
        numbers: tuple[Number, ...],
        since: float,
        *,
        run: int | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        return Finding(
            rule=rule,
            source=self.history.source,
            severity=self.thresholds.severity or severity or RULES[rule].severity,
            summary=summary,
            numbers=numbers,
            cause=suspected(rule, self.history, since),
            since=since,
            run=run,
        )

    def silence(self, rule: str, why: str) -> Silence:
        return Silence(rule=rule, source=self.history.source, why=why)
