"""Alerts, their evidence and their routes as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Content, ContentKey, Time, View

if TYPE_CHECKING:
    from penstock.alerts.history import Finding, Number
    from penstock.alerts.rules import Rule, Thresholds
    from penstock.engine.alerting.evidence import Evidence
    from penstock.store.alert_rows import AlertRow, Notice


class AlertView(View, frozen=True, kw_only=True):
    """An alert: `open`, `acknowledged` or `resolved`. Alerts of one cause have the same `incident`.

    `source` is null for an alert about the project. `seen_at` is when its condition was last seen to hold.
    """

    id: int = msgspec.field(name="alert")
    rule: str
    source: str | None
    state: str
    severity: str
    summary: str
    cause: Content[str]
    incident: int
    opened_at: Time
    seen_at: Time
    acknowledged_at: Time | None
    resolved_at: Time | None
    snoozed_until: Time | None
    actor: str
    reason: str
    runbook: str


class AlertRuleView(View, frozen=True, kw_only=True):
    """A rule of one source or of the project. `state` is `off`, `silent`, `watching` or `alert`.

    A silent rule has too little history for a baseline: `why` says how much it has. Of an alert, `why` is
    the summary.
    """

    rule: str
    state: str
    severity: str
    why: str
    runbook: str
    alert: int | None


class AlertNumberView(View, frozen=True, kw_only=True):
    """A measured value beside what is usual: `baseline`, its `spread`, and of how many runs they are made."""

    name: str
    value: float
    baseline: float | None
    spread: float | None
    limit: float | None
    counted: int | None
    unit: str
    words: str


class AlertExampleView(View, frozen=True, kw_only=True):
    """A failing example: a `job`, a `reject`, or a `page` that yielded nothing. `snapshot` is pinned."""

    what: str
    key: ContentKey[str]
    error: Content[str]
    run: int | None
    job: int | None
    url: ContentKey[str]
    snapshot: int | None
    at: Time | None


class PageStructureView(View, frozen=True, kw_only=True):
    """A failing page beside the last good one: which selectors, JSON-LD types or keys vanished and appeared.

    `kept` is the share of what the good page has that the failing one has, too. `is_other_page`: nearly
    nothing, as with an error page, a login or a block.
    """

    url: ContentKey[str]
    failing_snapshot: int
    good_snapshot: int
    good_url: ContentKey[str]
    good_at: Time
    vanished: Content[list[str]]
    appeared: Content[list[str]]
    kept: float
    is_other_page: bool
    title: Content[str]
    good_title: Content[str]


class FirstEventView(View, frozen=True, kw_only=True):
    """The first event of the change, as it was in the journal when the alert opened."""

    event: int
    at: Time
    kind: str
    detail: Content[str]
    run: int | None
    data: Content[dict[str, Any]]


class AlertNoticeView(View, frozen=True, kw_only=True):
    """What a route was told, or is to be told where `sent_at` is null."""

    route: str
    change: str
    at: Time
    sent_at: Time | None


class AlertDetail(AlertView, frozen=True, kw_only=True):
    """An alert with its evidence: gathered when it opened, and kept for as long as the alert is.

    `commands` are safe to run now. `missing` says what could not be gathered. `others` are the alerts of the
    same incident.
    """

    numbers: list[AlertNumberView]
    examples: list[AlertExampleView]
    structure: PageStructureView | None
    first_event: FirstEventView | None
    runbook_command: str
    commands: list[str]
    missing: list[str]
    pinned_snapshots: list[int]
    notices: list[AlertNoticeView]
    others: list[AlertView]


class AlertRouteView(View, frozen=True, kw_only=True):
    """A route of penstock.yaml: where alerts go. The address itself may be a secret, and is not shown."""

    name: str = msgspec.field(name="route")
    kind: str
    when: str
    sources: list[str]
    is_quiet: bool
    digest_s: float | None


class RouteTestView(View, frozen=True, kw_only=True):
    """How a test of a route went; `error` is empty when the message was accepted."""

    route: str
    kind: str
    is_accepted: bool
    error: str


def rule_view(
    rule: Rule, thresholds: Thresholds | None, silent: str | None, alert: AlertView | None
) -> AlertRuleView:
    """Thresholds are None where the rule is off; `silent` is why it can't judge yet."""
    state, why = "watching", ""
    if thresholds is None:
        state = "off"
    elif alert is not None:
        state, why = "alert", alert.summary
    elif silent is not None:
        state, why = "silent", silent
    return AlertRuleView(
        rule=rule.name,
        state=state,
        severity=(thresholds and thresholds.severity) or rule.severity,
        why=why,
        runbook=rule.runbook,
        alert=None if alert is None else alert.id,
    )


def alert_view(row: AlertRow) -> AlertView:
    return AlertView(**_common(row))


def _common(row: AlertRow) -> dict[str, Any]:
    from penstock.alerts.rules import RULES

    known = RULES.get(row.rule)
    return {
        "id": row.id,
        "rule": row.rule,
        "source": row.source,
        "state": row.state,
        "severity": row.severity,
        "summary": row.summary,
        "cause": row.cause,
        "incident": row.incident_id,
        "opened_at": row.opened_at,
        "seen_at": row.seen_at,
        "acknowledged_at": row.acknowledged_at,
        "resolved_at": row.resolved_at,
        "snoozed_until": row.snoozed_until,
        "actor": row.actor,
        "reason": row.reason,
        "runbook": "" if known is None else known.runbook,
    }


def number_view(number: Number) -> AlertNumberView:
    from penstock.engine.alerting.notices import number_words

    fields = msgspec.structs.asdict(number)
    return AlertNumberView(**fields, words=number_words(number))


def notice_view(notice: Notice) -> AlertNoticeView:
    return AlertNoticeView(
        route=notice.route, change=notice.change, at=notice.at, sent_at=notice.sent_at
    )


def alert_detail(
    row: AlertRow,
    finding: Finding,
    evidence: Evidence,
    pins: list[int],
    notices: list[Notice],
    others: list[AlertRow],
) -> AlertDetail:
    structure, first = evidence.structure, evidence.first_event
    return AlertDetail(
        **_common(row),
        numbers=[number_view(each) for each in finding.numbers],
        examples=[AlertExampleView(**msgspec.structs.asdict(each)) for each in evidence.examples],
        structure=None
        if structure is None
        else PageStructureView(**msgspec.structs.asdict(structure)),
        first_event=None if first is None else FirstEventView(**msgspec.structs.asdict(first)),
        runbook_command=evidence.runbook_command,
        commands=evidence.safe,
        missing=evidence.missing,
        pinned_snapshots=pins,
        notices=[notice_view(each) for each in notices],
        others=[alert_view(each) for each in others if each.id != row.id],
    )
