"""Alerts: what is wrong, with its evidence; who takes care of it; and the routes that tell of it."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.views.alerts import (
    AlertDetail,
    AlertRouteView,
    AlertRuleView,
    AlertView,
    RouteTestView,
    alert_detail,
    alert_view,
    rule_view,
)
from penstock.app.views.view import Page
from penstock.errors import Remedy, UsageError, nearest
from penstock.settings.alert_condition import when_text
from penstock.settings.alerts import RouteSettings
from penstock.settings.secrets import redact_and_cut
from penstock.store.alert_rows import ROUTE, AlertFilter, AlertRow

if TYPE_CHECKING:
    from penstock.alerts.rules import ByRule
    from penstock.settings.values import SourceSettings

# Those that are not resolved, those in one state, or all. `standing` is an older word for `unresolved`.
Shown = Literal["unresolved", "open", "acknowledged", "resolved", "all", "standing"]
SHORTEST_SNOOZE_S, LONGEST_SNOOZE_S = 60.0, 366 * 86_400.0
LONGEST_ERROR = 500
MOST_OTHERS = 100


class Alerts(Noun):
    """What is wrong with sources and with the project."""

    def list(
        self,
        *,
        state: Shown = "unresolved",
        source: str | None = None,
        rule: str | None = None,
        incident: int | None = None,
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[AlertView]:
        """Alerts, newest first: those that are not resolved, those in one state, or `all`."""
        size = size_of(limit)
        wanted = self._filter(state, source, rule, incident)
        rows = self._store.alerts.newest(wanted, size + 1, place_of(cursor, int))
        return page_of(rows, size, alert_view, lambda row: row.id)

    def each(
        self,
        *,
        state: Shown = "unresolved",
        source: str | None = None,
        rule: str | None = None,
        incident: int | None = None,
        limit: int | None = None,
    ) -> Iterator[AlertView]:
        """Iterate over all of them, or the newest `limit`, page by page."""
        return each_item(
            lambda cursor, size: self.list(
                state=state,
                source=source,
                rule=rule,
                incident=incident,
                cursor=cursor,
                limit=size,
            ),
            limit,
        )

    def get(self, alert: int) -> AlertDetail:
        """An alert with its evidence, what routes were told, and the other alerts of its incident."""
        from penstock.alerts.history import Finding
        from penstock.engine.alerting.evidence import Evidence

        row, store = self._require(alert), self._store
        family = store.alerts.newest(AlertFilter(incident_id=row.incident_id), MOST_OTHERS)
        return alert_detail(
            row,
            msgspec.json.decode(row.finding, type=Finding),
            msgspec.json.decode(store.alerts.evidence(alert), type=Evidence),
            store.alerts.pins(alert),
            store.alerts.notices(alert),
            family,
        )

    def rules(self, source: str | None = None) -> Sequence[AlertRuleView]:
        """The rules about one source, or about the project: what each is doing, and why one is silent."""
        from penstock.alerts.rules import RULES, thresholds_by_rule

        settings = self._project.settings
        scope = "project" if source is None else "source"
        own = None if source is None else self._project.source(source)
        layers = [settings.alert_rules, *([] if own is None else [own.alert_rules])]
        thresholds = thresholds_by_rule(*layers)
        silent = {} if own is None else self._silent(own, thresholds)
        open_alerts = {
            each.rule: each
            for each in self.each(source=None if own is None else own.key)
            if (each.source is None) == (own is None)
        }
        return [
            rule_view(
                rule, thresholds.get(rule.name), silent.get(rule.name), open_alerts.get(rule.name)
            )
            for rule in RULES.values()
            if rule.scope == scope
        ]

    def _silent(self, source: SourceSettings, thresholds: ByRule) -> dict[str, str]:
        """The rules that can't judge this source yet, and why."""
        from penstock.alerts.judge import judge
        from penstock.engine.alerting.facts import facts_of
        from penstock.engine.alerting.histories import history_of, runs_of

        facts = facts_of(self._store)
        if source.key not in facts.sources:
            return dict.fromkeys(thresholds, "it has not run yet")
        runs = runs_of(self._store, facts, source)
        judged = judge(history_of(self._store, facts, source, runs), thresholds, facts.now)
        return {each.rule: each.why for each in judged.silent}

    def acknowledge(self, alert: int, *, actor: str | None = None, reason: str = "") -> bool:
        """Acknowledge an alert; False if it was acknowledged before or is resolved."""
        self._require(alert)
        return self._store.alerts.acknowledge(alert, who(actor), reason)

    def snooze(
        self, alert: int, for_s: float, *, actor: str | None = None, reason: str = ""
    ) -> bool:
        """Send no messages about an alert for this long; False if it is resolved.

        If its condition still holds after that, its routes get a reminder.
        """
        if not SHORTEST_SNOOZE_S <= for_s <= LONGEST_SNOOZE_S:
            raise UsageError(
                "snooze an alert for a minute to a year", "such as 2h or 1d", code="bad_snooze"
            )
        self._require(alert)
        until = self._store.now() + for_s
        return self._store.alerts.snooze(alert, until, who(actor), reason)

    def resolve(self, alert: int, *, actor: str | None = None, reason: str = "") -> bool:
        """Close an alert; False if it is resolved. It stays closed until its condition ends and returns."""
        self._require(alert)
        return self._store.alerts.resolve(alert, who(actor), reason)

    def routes(self) -> Sequence[AlertRouteView]:
        """The routes of penstock.yaml, in their order."""
        return [
            AlertRouteView(
                name=route.name,
                kind=route.kind,
                when=when_text(route.when),
                sources=builtins.list(route.sources),
                is_quiet=bool(route.quiet),
                digest_s=route.digest_s,
            )
            for route in self._project.settings.alerts
        ]

    def test(self, route: str, *, actor: str | None = None, reason: str = "") -> RouteTestView:
        """Send a test message to a route now, ignoring its condition, quiet hours and digest."""
        from penstock.engine.alerting.message import trial_message
        from penstock.engine.alerting.routes import send_on_route
        from penstock.store.hooks import Parcel

        found = self._route(route)
        settings, now = self._project.settings, self._project.clock.now()
        body = msgspec.json.encode(trial_message(settings.project, route, now)).decode()
        parcel = Parcel(0, f"{ROUTE}{route}", 0, "alert", body, 1)
        error = redact_and_cut(send_on_route(found, parcel, now), settings.secrets, LONGEST_ERROR)
        self._store.alerts.note_test(route, error, who(actor), reason)
        return RouteTestView(route=route, kind=found.kind, is_accepted=not error, error=error)

    def _route(self, name: str) -> RouteSettings:
        routes = {each.name: each for each in self._project.settings.alerts}
        if not routes:
            raise UsageError(
                "penstock.yaml has no routes for alerts",
                "add one under `alerts:`, such as {to: https://example.com/hook}",
                code="no_route",
            )
        if name not in routes:
            raise UsageError(f"there is no route {name!r}", nearest(name, routes), code="no_route")
        return routes[name]

    def _require(self, alert: int) -> AlertRow:
        row = self._store.alerts.get(alert)
        if row is None:
            raise UsageError(
                f"there is no alert {alert}", code="no_alert", remedy=Remedy("alerts.list")
            )
        return row

    def _filter(
        self, state: Shown, source: str | None, rule: str | None, incident: int | None
    ) -> AlertFilter:
        from penstock.alerts.rules import RULES

        if rule is not None and rule not in RULES:
            raise UsageError(f"there is no rule {rule!r}", nearest(rule, RULES), code="no_rule")
        source_id = None
        if source is not None:
            key = self._project.source_key(source)
            source_id = self._store.sources.ids()[key] if key is not None else None
        is_one = state in ("open", "acknowledged", "resolved")
        return AlertFilter(
            standing_only=state in ("unresolved", "standing"),
            state=state if is_one else None,  # type: ignore[arg-type]
            source_id=source_id,
            rule=rule,
            incident_id=incident,
        )
