"""Notices: what routes are to be told becomes messages, when quiet hours and digests let it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from penstock.alerts.history import Finding, Number
from penstock.alerts.words import amount, duration, share, size
from penstock.clock import iso
from penstock.engine.alerting.evidence import Evidence
from penstock.engine.alerting.message import Told, message_of
from penstock.project import Project
from penstock.settings.alerts import RouteSettings
from penstock.settings.secrets import redact
from penstock.store.alert_rows import AlertFilter, AlertRow, Notice
from penstock.store.store import Store

# More than this at one moment go as one message.
MOST_BY_THEMSELVES = 3
MOST_TOLD = 10
CRITICAL = "critical"
_UNITS = {"share": share, "s": duration, "bytes": size}
_finding = msgspec.json.Decoder(Finding).decode
_evidence = msgspec.json.Decoder(Evidence).decode


class NoticeSender:
    """Puts messages into the outbox. A notice is in one message, whoever dies meanwhile."""

    def __init__(self, project: Project, store: Store) -> None:
        self._store = store
        self._secrets = project.settings.secrets
        self._private = project.settings.private_sources
        self._routes = {route.name: route for route in project.settings.alerts}

    def plan(self) -> None:
        """Forget what was to be told to routes that penstock.yaml no longer has."""
        self._store.alerts.drop_notices(sorted(self._routes))

    def look(self) -> None:
        """Send what may go now."""
        by_route: dict[str, list[Notice]] = defaultdict(list)
        for notice in self._store.alerts.waiting():
            by_route[notice.route].append(notice)
        for name, notices in by_route.items():
            if name in self._routes:
                self._send(self._routes[name], notices)

    def _send(self, route: RouteSettings, notices: Sequence[Notice]) -> None:
        rows = {n.alert_id: self._store.alerts.get(n.alert_id) for n in notices}
        now = self._store.now()
        due = [n for n in notices if (row := rows[n.alert_id]) and _is_due(route, n, row, now)]
        if route.digest_s is not None and due and _is_over(route, notices, now):
            due = [n for n in notices if rows[n.alert_id]]
        by_alert: dict[int, list[Notice]] = defaultdict(list)
        for notice in due:
            by_alert[notice.alert_id].append(notice)
        is_one = route.digest_s is not None or len(by_alert) > MOST_BY_THEMSELVES
        groups = [list(by_alert)] if is_one and by_alert else [[alert] for alert in by_alert]
        for group in groups:
            told = [
                self._told(row, by_alert[alert])
                for alert in group
                if (row := rows[alert]) is not None
            ]
            self._put(route.name, told, [n for alert in group for n in by_alert[alert]])

    def _put(self, route: str, told: Sequence[Told], notices: Sequence[Notice]) -> None:
        body = msgspec.json.encode(message_of(told)).decode()
        self._store.alerts.send(route, redact(body, self._secrets), notices)

    def _told(self, row: AlertRow, notices: Sequence[Notice]) -> Told:
        """As the alert is now; a change that was held back and is over by now is told as it ended."""
        evidence = _evidence(self._store.alerts.evidence(row.id))
        if row.source in self._private:
            # Numbers may leave, and what pages or errors said may not.
            evidence = msgspec.structs.replace(evidence, examples=[], structure=None)
            row = msgspec.structs.replace(row, cause="")
        structure = evidence.structure
        family = AlertFilter(incident_id=row.incident_id)
        return Told(
            alert=row.id,
            change=notices[-1].change,
            rule=row.rule,
            source=row.source,
            severity=row.severity,
            state=row.state,
            summary=row.summary,
            cause=row.cause,
            opened_at=iso(row.opened_at),
            resolved_at=iso(row.resolved_at),
            incident=row.incident_id,
            others=len(self._store.alerts.newest(family, 1000)) - 1,
            numbers=[number_words(each) for each in _finding(row.finding).numbers],
            examples=[each.words for each in evidence.examples],
            vanished=[] if structure is None else structure.vanished[:MOST_TOLD],
            runbook=evidence.runbook,
            commands=_commands(row, evidence),
        )


def _is_due(route: RouteSettings, notice: Notice, row: AlertRow, now: float) -> bool:
    """A critical alert waits for nothing."""
    if row.severity == CRITICAL:
        return True
    is_collected = route.digest_s is None or notice.at + route.digest_s <= now
    return is_collected and route.held_until(row.severity, now) <= now


def _is_over(route: RouteSettings, notices: Sequence[Notice], now: float) -> bool:
    """Whether the time of a digest is over: then what came later goes with it."""
    return min(notice.at for notice in notices) + (route.digest_s or 0.0) <= now


def _commands(row: AlertRow, evidence: Evidence) -> list[str]:
    own = [f"penstock alerts show {row.id}", f"penstock alerts ack {row.id}"]
    return [*own, evidence.runbook_command, *evidence.safe]


def number_words(number: Number) -> str:
    """`failed jobs: 42 % (usually 1.2 %, limit 20 %)`."""
    write = _UNITS.get(number.unit, amount)
    unit = "" if number.unit in ("", *_UNITS) else f" {number.unit}"
    notes = []
    if number.baseline is not None:
        spread = "" if number.spread is None else f" ± {write(number.spread)}"
        notes.append(f"usually {write(number.baseline)}{spread}")
    if number.limit is not None:
        notes.append(f"limit {write(number.limit)}")
    if number.counted is not None:
        notes.append(f"of {number.counted} runs")
    return f"{number.name}: {write(number.value)}{unit}" + (
        f" ({', '.join(notes)})" if notes else ""
    )
