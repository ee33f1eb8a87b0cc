"""Events about alerts: what was found, who saw it, and when it ended."""

from __future__ import annotations

from typing import ClassVar

from penstock.clock import iso
from penstock.journal.event import Event, with_reason

OPERATOR = "an operator"
LEADER = "the host that leads"


class AlertEvent(Event, frozen=True, omit_defaults=True):
    """`alert` is the number that `penstock alerts` lists, `rule` the rule that found it."""

    alert: int
    rule: str
    reason: str = ""

    @property
    def _name(self) -> str:
        return f"{self.rule} ({self.alert})"

    def sentence(self) -> str:
        return with_reason(self._name, self.reason)


class AlertOpened(AlertEvent, frozen=True, omit_defaults=True):
    """A rule's condition holds. `incident` is the first alert of the same cause, or this one."""

    kind: ClassVar[str] = "alert.opened"
    by: ClassVar[str] = LEADER

    severity: str = ""
    incident: int = 0

    def sentence(self) -> str:
        return with_reason(f"{self._name}, {self.severity}", self.reason)


class AlertReopened(AlertEvent, frozen=True, omit_defaults=True):
    """The condition of an alert that was resolved a short while ago holds again."""

    kind: ClassVar[str] = "alert.reopened"
    by: ClassVar[str] = LEADER


class AlertSeverityChanged(AlertEvent, frozen=True, omit_defaults=True):
    """An alert that is not resolved has become worse or better."""

    kind: ClassVar[str] = "alert.severity_changed"
    by: ClassVar[str] = LEADER

    before: str = ""
    severity: str = ""

    def sentence(self) -> str:
        return f"{self._name}: {self.before} → {self.severity}"


class AlertAcknowledged(AlertEvent, frozen=True, omit_defaults=True):
    """Somebody acknowledged an alert."""

    kind: ClassVar[str] = "alert.acknowledged"
    by: ClassVar[str] = OPERATOR


class AlertSnoozed(AlertEvent, frozen=True, omit_defaults=True):
    """Somebody muted an alert until then."""

    kind: ClassVar[str] = "alert.snoozed"
    by: ClassVar[str] = OPERATOR

    until: float = 0.0

    def sentence(self) -> str:
        return with_reason(f"{self._name} until {iso(self.until)}", self.reason)


class AlertWoken(AlertEvent, frozen=True, omit_defaults=True):
    """The snooze of an alert that is not resolved has ended."""

    kind: ClassVar[str] = "alert.snooze_ended"
    by: ClassVar[str] = LEADER


class AlertResolved(AlertEvent, frozen=True, omit_defaults=True):
    """The condition of an alert has ended, or somebody has resolved it."""

    kind: ClassVar[str] = "alert.resolved"
    by: ClassVar[str] = f"{LEADER}; {OPERATOR}"


class AlertSent(Event, frozen=True, omit_defaults=True):
    """A message about alerts is in the outbox. `delivery` is the number that `penstock hooks` lists."""

    kind: ClassVar[str] = "alert.sent"
    by: ClassVar[str] = LEADER

    route: str
    delivery: int
    alerts: tuple[int, ...] = ()

    def sentence(self) -> str:
        numbers = ", ".join(str(each) for each in self.alerts)
        return f"{self.route} ({self.delivery}): {numbers}"


class AlertRouteTested(Event, frozen=True, omit_defaults=True):
    """Somebody has sent a test message over a route; `error` is why it was not accepted."""

    kind: ClassVar[str] = "alert.route_tested"
    by: ClassVar[str] = OPERATOR

    route: str
    error: str = ""
    reason: str = ""

    def sentence(self) -> str:
        told = f"{self.route}: {self.error or 'accepted'}"
        return with_reason(told, self.reason)


EVENTS: tuple[type[Event], ...] = (
    AlertOpened,
    AlertReopened,
    AlertSeverityChanged,
    AlertAcknowledged,
    AlertSnoozed,
    AlertWoken,
    AlertResolved,
    AlertSent,
    AlertRouteTested,
)
