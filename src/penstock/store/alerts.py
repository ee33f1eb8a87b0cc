"""Alerts: what is wrong with a source or the project, who takes care of it, and who is told.

Of each rule and source one alert stands at a time. Each change is one transaction with its line in the
journal and the notices for the routes that hear of it. A notice goes into the outbox in the transaction that
notes it as sent, so a route is sent each one once; from there on the outbox sees to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from penstock.journal import alert_events as events
from penstock.journal.event import Event
from penstock.store.alert_rows import (
    ROUTE,
    AlertFilter,
    AlertRow,
    Change,
    Notice,
    Opening,
)
from penstock.store.database import Database, storable_text, to_json
from penstock.store.history import Marks
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun

ACTOR = "alerts"


class Alerts(Noun):
    """The verbs of alerts."""

    # What there is.

    def newest(
        self, wanted: AlertFilter, limit: int = 50, before_id: int | None = None
    ) -> list[AlertRow]:
        """The newest first; with `before_id`, those that are older than this one."""
        return self._db.decoded("alerts", list[AlertRow], **wanted.as_values(limit, before_id))

    def get(self, alert_id: int) -> AlertRow | None:
        found = self.newest(AlertFilter(), 1, alert_id + 1)
        return found[0] if found and found[0].id == alert_id else None

    def evidence(self, alert_id: int) -> str:
        """What was gathered when it opened, as JSON."""
        return str(self._db.value("alert_evidence", id=alert_id) or "{}")

    def watched(self, since: float) -> list[AlertRow]:
        """What stands, was resolved since then, or was resolved by a person while its condition held."""
        return self._db.decoded("watched_alerts", list[AlertRow], since=since)

    def pins(self, alert_id: int) -> list[int]:
        """The snapshots that an alert keeps."""
        found: list[int] = self._db.json("pinned_snapshots", alert_id=alert_id)
        return found

    def notices(self, alert_id: int) -> list[Notice]:
        """What routes were and are to be told of an alert, the first first."""
        return self._db.decoded("notices_of_alert", list[Notice], alert_id=alert_id)

    # What the judge does.

    def open(self, opening: Opening) -> int | None:
        """Open an alert with its evidence, and pin that; None if one of this rule and source stands."""
        with self._db.writing() as now:
            found = self._db.value(
                "add_alert",
                now=now,
                rule=opening.rule,
                source_id=opening.source_id,
                severity=opening.severity,
                summary=storable_text(opening.summary),
                cause=storable_text(opening.cause),
                incident_id=opening.incident_id,
                finding=opening.finding,
                memory=opening.memory,
                evidence=opening.evidence,
            )
            if found is None:
                return None
            alert_id = int(found)
            self._db.do("lead_own_incident", id=alert_id)
            if opening.pins:
                self._db.do("pin_snapshots", alert_id=alert_id, ids=to_json(opening.pins))
            incident = opening.incident_id or alert_id
            self._notify(alert_id, incident, opening.routes, "opened", now)
            event = events.AlertOpened(
                alert_id, opening.rule, opening.summary, opening.severity, incident
            )
            self._tell(event, opening.source_id, now, ACTOR)
            return alert_id

    def note(
        self,
        row: AlertRow,
        severity: str,
        summary: str,
        cause: str,
        finding: str,
        *,
        louder_for: Sequence[str] = (),
    ) -> None:
        """The condition holds still; these routes hear that it has become worse."""
        with self._db.writing() as now:
            about = {"severity": severity, "summary": storable_text(summary), "finding": finding}
            about["cause"] = storable_text(cause)
            is_standing = self._db.do("note_alert_if_standing", id=row.id, now=now, **about)
            if is_standing and severity != row.severity:
                event = events.AlertSeverityChanged(row.id, row.rule, "", row.severity, severity)
                self._add_notices(row.id, louder_for, "escalated", now)
                self._tell(event, row.source_id, now, ACTOR)

    def remember(self, alert_id: int, memory: str) -> None:
        """Keep what the judge wants to know of this alert when it looks next."""
        with self._db.writing():
            self._db.do("remember_of_alert", id=alert_id, memory=memory)

    def reopen(self, row: AlertRow, summary: str, routes: Sequence[str] = ()) -> bool:
        """Its condition holds again, soon after it ended; False if it stands, or another of its kind does."""
        with self._db.writing() as now:
            if not self._db.rows("reopen_alert_if_resolved", id=row.id, now=now):
                return False
            self._add_notices(row.id, routes, "opened", now)
            self._tell(events.AlertReopened(row.id, row.rule, summary), row.source_id, now, ACTOR)
            return True

    def end(self, row: AlertRow, reason: str) -> bool:
        """Its condition has ended: it is resolved by itself."""
        return self._resolve(row.id, ACTOR, reason, is_held=False)

    def let_go(self, alert_id: int) -> None:
        """The condition of one that a person resolved has ended: what comes next opens an alert again."""
        with self._db.writing():
            self._db.do("let_held_alert_go", id=alert_id)

    def wake(self, row: AlertRow, routes: Sequence[str]) -> bool:
        """Its snooze is over; these routes are reminded of it."""
        with self._db.writing() as now:
            if not self._db.rows("wake_alert_if_snoozed", id=row.id, now=now):
                return False
            self._add_notices(row.id, routes, "reminded", now)
            self._tell(events.AlertWoken(row.id, row.rule), row.source_id, now, ACTOR)
            return True

    # What a person does.

    def acknowledge(self, alert_id: int, actor: str, reason: str) -> bool:
        """Somebody takes care of it; False if somebody does already, or if it is resolved."""
        with self._db.writing() as now:
            about = {"id": alert_id, "actor": storable_text(actor), "reason": storable_text(reason)}
            for rule, source_id in self._db.rows("acknowledge_alert_if_open", now=now, **about):
                event = events.AlertAcknowledged(alert_id, rule, reason)
                self._tell(event, source_id, now, actor)
                return True
            return False

    def snooze(self, alert_id: int, until: float, actor: str, reason: str) -> bool:
        """Routes hear no more of it until then; False if it is resolved."""
        with self._db.writing() as now:
            about = {"id": alert_id, "actor": storable_text(actor), "reason": storable_text(reason)}
            for rule, source_id in self._db.rows("snooze_alert_if_standing", until=until, **about):
                event = events.AlertSnoozed(alert_id, rule, reason, until)
                self._tell(event, source_id, now, actor)
                return True
            return False

    def resolve(self, alert_id: int, actor: str, reason: str) -> bool:
        """A person ends it. It opens again only after its condition has ended; False if it is resolved."""
        return self._resolve(alert_id, actor, reason, is_held=True)

    def _resolve(self, alert_id: int, actor: str, reason: str, *, is_held: bool) -> bool:
        with self._db.writing() as now:
            about = {"id": alert_id, "actor": storable_text(actor), "reason": storable_text(reason)}
            moved = self._db.rows("resolve_alert_if_standing", now=now, is_held=is_held, **about)
            for rule, source_id, incident_id in moved:
                self._end_incident(incident_id, now)
                self._tell(events.AlertResolved(alert_id, rule, reason), source_id, now, actor)
            return bool(moved)

    def _end_incident(self, incident_id: int, now: float) -> None:
        """A route that was told of an incident hears that it is over when all of it is."""
        if not self._db.value("alerts_standing_of_incident", incident_id=incident_id):
            for route, alert_id in self._told(incident_id).items():
                self._add_notices(alert_id, [route], "resolved", now)

    def _told(self, incident_id: int) -> dict[str, int]:
        found: dict[str, int] = self._db.json("routes_told", incident_id=incident_id)
        return found

    # Who is told.

    def waiting(self) -> list[Notice]:
        """Notices that are in no message yet, by route and time."""
        return self._db.decoded("waiting_notices", list[Notice])

    def send(self, route: str, body: str, notices: Sequence[Notice]) -> int | None:
        """Put a message about these notices into the outbox; None if somebody else has sent some of them."""
        with suppress(_Sent), self._db.writing() as now:
            keys = to_json([notice.key for notice in notices])
            if self._db.do("note_sent_if_waiting", notices=keys, now=now) != len(notices):
                raise _Sent
            hook = f"{ROUTE}{route}"
            delivery = int(self._db.value("put_alert_message", hook=hook, body=body, now=now))
            about = tuple(sorted({notice.alert_id for notice in notices}))
            self._tell(events.AlertSent(route, delivery, about), 0, now, ACTOR)
            return delivery
        return None

    def drop_notices(self, routes: Sequence[str]) -> None:
        """Forget what was to be told to routes that no longer exist: these are all there are."""
        with self._db.writing():
            self._db.do("drop_notices_of_others", routes=to_json(sorted(routes)))

    def note_test(self, route: str, error: str, actor: str, reason: str) -> None:
        """Say in the journal that somebody has tested a route."""
        with self._db.writing() as now:
            self._tell(events.AlertRouteTested(route, error, reason), 0, now, actor)

    def _notify(
        self, alert_id: int, incident: int, routes: Sequence[str], change: Change, now: float
    ) -> None:
        """Of one incident each route hears once."""
        told = self._told(incident) if routes else {}
        self._add_notices(alert_id, [each for each in routes if each not in told], change, now)

    def _add_notices(
        self, alert_id: int, routes: Sequence[str], change: Change, now: float
    ) -> None:
        if routes:
            about = {"alert_id": alert_id, "change": change, "now": now}
            self._db.do("add_notices", routes=to_json(sorted(routes)), **about)

    def _tell(self, event: Event, source_id: int, now: float, actor: str) -> None:
        ledger = Ledger(self._db, now)
        ledger.journal(event, source_id or None, actor=actor)
        ledger.write()


class _Sent(Exception):
    """Somebody else has sent a part of these notices: the transaction is undone."""


def prune_alerts(db: Database, _: Marks, before: float, limit: int) -> int:
    """Drop incidents that were resolved before then, with what they pin; 0 when none is left."""
    with db.writing():
        dropped = db.do("drop_alerts", before=before, limit=limit)
        if dropped:
            db.do("drop_alert_pins")
            db.do("drop_alert_notices")
    return dropped
