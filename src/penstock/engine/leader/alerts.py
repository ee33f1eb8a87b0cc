"""Alerts: the histories of sources and of the project are judged, and alerts opened, noted and resolved.

Done by the host that leads, outside of any turn. Sources of which a run has ended, or that have an alert, are
looked at every half minute; all others in a round that takes longer the more there are. Findings stay known
between two looks, so that alerts of one cause become one incident whichever source is looked at first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import msgspec

from penstock.alerts import run_rules
from penstock.alerts.history import Finding, Judgement
from penstock.alerts.incidents import attributed, by_incident
from penstock.alerts.judge import judge, judge_project
from penstock.alerts.lifecycle import REOPEN_WITHIN_S as WATCHED_S
from penstock.alerts.lifecycle import Memory, Standing, Step, next_step
from penstock.alerts.rules import RULES, ByRule, thresholds_by_rule
from penstock.engine.alerting.compliance import ComplianceWatch
from penstock.engine.alerting.evidence import Evidence, EvidenceGatherer
from penstock.engine.alerting.facts import Facts, facts_of
from penstock.engine.alerting.histories import (
    ProjectWatch,
    budget_history,
    history_of,
    hosts_of,
    runs_of,
)
from penstock.engine.alerting.notices import NoticeSender
from penstock.engine.alerting.recent_signals import RecentSignals
from penstock.engine.alerting.sites import SiteWatch
from penstock.project import Project
from penstock.settings.secrets import redact
from penstock.store.alert_rows import AlertRow, Opening
from penstock.store.store import Store

# What has changed is looked at so often, everything in a round of at least this, and longer for many sources.
EVERY_S = 30.0
ROUND_S = 60.0
ROUND_PER_SOURCE_S = 0.6
# For so long one look may keep the leader from its other chores.
SPAN_S = 0.2
# A run that ended while the last look went on is seen by the next one.
OVERLAP_S = 5.0
FACTS_S = 10.0
# A task that was given up so shortly before is looked at by whoever begins to lead.
GIVEN_UP_S = 60.0
# An alert whose condition holds is noted so often, and at once when it becomes worse or better.
NOTED_S = 300.0
PROJECT = ""
ACTOR = "penstock"
# The signal of an alert whose evidence shows that pages lost elements which good ones had.
DRIFTED = "source.structure_drifted"
GONE = "the source is no longer in penstock.yaml"
UNKNOWN = "this version has no such rule"
Place = tuple[str, str]


class AlertChore:
    """One host's share in it: nothing while another leads."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store
        self._settings = project.settings
        self._gatherer = EvidenceGatherer(store, project.read_page)
        self._watch = ProjectWatch(project, store)
        self._signals = RecentSignals(store)
        self._sites = SiteWatch(store)
        self._compliance = ComplianceWatch(store, project.compliance)
        self._sender = NoticeSender(project, store)
        self._hosts = {key: hosts_of(each) for key, each in project.settings.sources.items()}
        self._thresholds: dict[str, ByRule] = {}
        self._keys: dict[int, str] = {}
        self._judged: dict[str, Judgement] = {}
        self._last_runs: dict[str, tuple[int, float]] = {}
        self._queue: deque[str] = deque()
        self._facts: tuple[float, Facts] | None = None
        self._look_at = self._round_at = float("-inf")
        self._seen_at: float | None = None

    def plan(self) -> None:
        ids = self._store.sources.ensure(list(self._settings.sources))
        self._keys = {source_id: key for key, source_id in ids.items()}
        self._sender.plan()

    def look(self) -> None:
        """Judge what it is time for, and send what is to be told."""
        now = self._project.clock.monotonic()
        if now >= self._look_at:
            self._look_at = now + EVERY_S
            self._take_up(now)
        if self._queue:
            self._judge_some(now + SPAN_S)
        self._sender.look()

    def part(self) -> None:
        """Judge what has ended a last time before this process does."""
        self._queue.clear()
        self._facts = None
        self._queue.extend(self._changed())
        self._judge_some(float("inf"))
        self._sender.look()

    def close(self) -> None:
        self._gatherer.close()

    def _take_up(self, now: float) -> None:
        """Queue what has changed, and everything when a round begins; what waits stays in its place."""
        waiting = set(self._queue)
        keys = self._changed()
        if now >= self._round_at:
            sources = self._settings.sources
            self._round_at = now + max(ROUND_S, ROUND_PER_SOURCE_S * len(sources))
            keys = [*keys, *(key for key in sources if key not in keys)]
        self._queue.extend(key for key in keys if key not in waiting)

    def _changed(self) -> list[str]:
        """Sources with an alert, of which a run has ended, or a task was given up; and the project."""
        now = self._store.now()
        self._signals.read()
        # At first everything is looked at anyway.
        since = now if self._seen_at is None else self._seen_at - OVERLAP_S
        ended = self._store.alert_facts.ended_since(since)
        keys = {self._keys.get(source_id, PROJECT) for source_id in ended}
        self._seen_at = now
        keys |= {row.source or PROJECT for row in self._store.alerts.watched(now)}
        given_up = self._signals.given_up().items()
        keys |= {key for key, tasks in given_up if max(t.at for t in tasks) > since - GIVEN_UP_S}
        return [PROJECT, *sorted(keys & self._settings.sources.keys())]

    # Judging.

    def _judge_some(self, until: float) -> None:
        facts = self._facts_of_now()
        rows = self._watched(facts.now)
        looked: list[str] = []
        while self._queue:
            key = self._queue.popleft()
            if key == PROJECT or key in facts.sources:
                self._judged[key] = self._judgement(key, facts, rows)
                looked.append(key)
            if self._project.clock.monotonic() >= until:
                break
        self._settle(looked, rows, facts)

    def _facts_of_now(self) -> Facts:
        """Read again every few seconds: they are of all sources, and a look is at some."""
        now = self._project.clock.monotonic()
        if self._facts is None or now >= self._facts[0] + FACTS_S:
            facts = facts_of(self._store)
            facts.drifts, facts.given_up = self._signals.drifts(), self._signals.given_up()
            facts.sites, facts.new_references = self._sites.look(facts.now)
            facts.compliance = self._compliance.look(facts.now)
            self._facts = (now, facts)
        return self._facts[1]

    def _watched(self, now: float) -> dict[Place, AlertRow]:
        """The last alert of each rule and source that matters to what is found now."""
        found: dict[Place, AlertRow] = {}
        for row in sorted(self._store.alerts.watched(now - WATCHED_S), key=lambda each: each.id):
            if row.rule in RULES:
                found[row.rule, row.source or PROJECT] = row
            elif row.is_standing:  # a newer version has found it
                self._store.alerts.end(row, UNKNOWN)
        return found

    def _judgement(self, key: str, facts: Facts, rows: Mapping[Place, AlertRow]) -> Judgement:
        standing = {
            rule: row.opened_at
            for (rule, source), row in rows.items()
            if source == key and row.is_standing
        }
        by_rule = self._by_rule(key)
        if key != PROJECT:
            return self._of_source(key, facts, by_rule, standing)
        found = judge_project(self._watch.history(facts), by_rule, facts.now, standing)
        bounds = {rule: each for rule, each in by_rule.items() if rule == "budget-running-out"}
        budgets = judge(budget_history(facts), bounds, facts.now, standing)
        return Judgement(found.findings + budgets.findings, found.silent)

    def _of_source(
        self, key: str, facts: Facts, by_rule: ByRule, standing: Mapping[str, float]
    ) -> Judgement:
        """What rules found in the runs of a source holds until one more has ended: they cost the most."""
        source = self._settings.sources[key]
        runs = runs_of(self._store, facts, source)
        before = self._judged.get(key)
        is_known = before is not None and self._last_runs.get(key) == runs.last and not standing
        self._last_runs[key] = runs.last
        if is_known:
            by_rule = {name: each for name, each in by_rule.items() if name not in run_rules.RULES}
        history = history_of(self._store, facts, source, runs)
        found = judge(history, by_rule, facts.now, standing)
        return _joined(found, before) if is_known and before else found

    def _by_rule(self, key: str) -> ByRule:
        if key not in self._thresholds:
            source = self._settings.sources.get(key)
            layers = [self._settings.alert_rules, *([source.alert_rules] if source else [])]
            self._thresholds[key] = thresholds_by_rule(*layers)
        return self._thresholds[key]

    # What becomes of alerts.

    def _settle(self, looked: Iterable[str], rows: Mapping[Place, AlertRow], facts: Facts) -> None:
        seen = set(looked)
        known = chain.from_iterable(each.findings for each in self._judged.values())
        findings = attributed(tuple(known), self._hosts)
        silent = {(s.rule, s.source) for each in self._judged.values() for s in each.silent}
        for group in by_incident(findings).values():
            incident = self._incident_of(group, rows)
            for finding in group:
                if finding.source in seen:
                    incident = self._found(finding, rows, facts, incident) or incident
        there = {(each.rule, each.source) for each in findings}
        for (rule, source), row in rows.items():
            is_gone = source != PROJECT and source not in self._settings.sources
            if (rule, source) not in there and (source in seen or is_gone):
                self._cleared(row, facts.now, GONE if is_gone else "", (rule, source) not in silent)

    def _incident_of(self, group: Iterable[Finding], rows: Mapping[Place, AlertRow]) -> int:
        """The incident that an alert of this cause leads already, or 0."""
        known = (rows.get((each.rule, each.source)) for each in group)
        return next((row.incident_id for row in known if row and row.is_standing), 0)

    def _found(
        self, finding: Finding, rows: Mapping[Place, AlertRow], facts: Facts, incident: int
    ) -> int | None:
        """A condition holds; answers with the incident of an alert that this has opened."""
        row = rows.get((finding.rule, finding.source))
        step = next_step(_standing(row), finding, facts.now)
        if step.verb == "open":
            return self._open(finding, step, facts, incident)
        if row is None or step.verb == "nothing":
            return None
        routes = self._routes(finding) if step.is_loud else []
        if step.verb == "reopen":
            self._store.alerts.reopen(row, self._masked(finding.summary), routes)
        elif step.verb == "wake":
            self._store.alerts.wake(row, routes)
        if step.verb == "note" and _is_news(row, finding, facts.now):
            about = (
                finding.severity,
                self._masked(finding.summary),
                self._masked(finding.cause.words),
            )
            self._store.alerts.note(row, *about, self._json(finding), louder_for=routes)
        self._remember(row, step)
        return None

    def _open(self, finding: Finding, step: Step, facts: Facts, incident: int) -> int | None:
        source = facts.sources.get(finding.source)
        source_id = 0 if source is None else source.id
        evidence = self._gatherer.gather(finding, source_id)
        opened = self._store.alerts.open(
            Opening(
                finding.rule,
                source_id,
                finding.severity,
                self._masked(finding.summary),
                cause=self._masked(finding.cause.words),
                incident_id=incident,
                finding=self._json(finding),
                memory=self._json(step.memory),
                evidence=self._json(evidence),
                pins=evidence.pins,
                routes=tuple(self._routes(finding)) if step.is_loud else (),
            )
        )
        if opened is None:
            return None
        self._tell_drift(finding, opened, evidence, source_id)
        return incident or opened

    def _tell_drift(self, finding: Finding, alert: int, evidence: Evidence, source_id: int) -> None:
        """Pages are built in another way: agents may learn the site again."""
        structure = evidence.structure
        if structure is None or structure.is_other_page or not structure.vanished:
            return
        data = {"alert": alert, "rule": finding.rule, "kept": round(structure.kept, 3)}
        about: dict[str, Any] = {"source_id": source_id, "key": f"alert {alert}"}
        self._store.signals.raise_(DRIFTED, data, actor=ACTOR, **about)

    def _cleared(self, row: AlertRow, now: float, gone: str, is_judged: bool) -> None:
        step = next_step(_standing(row), None, now, is_judged=is_judged or bool(gone))
        if step.verb == "let_go":
            self._store.alerts.let_go(row.id)
        elif row.is_standing and (gone or step.verb == "end"):
            self._store.alerts.end(row, gone or step.reason)
            self._remember(row, step)
        elif step.verb == "remember":
            self._remember(row, step)

    def _remember(self, row: AlertRow, step: Step) -> None:
        memory = self._json(step.memory)
        if memory != row.memory:
            self._store.alerts.remember(row.id, memory)

    def _routes(self, finding: Finding) -> list[str]:
        """Who hears of it; a route that is dead does not hear so by itself."""
        dead = finding.cause.key if finding.rule == "route-dead" else None
        about = (finding.severity, finding.rule, finding.source)
        return [r.name for r in self._settings.alerts if r.name != dead and r.accepts(*about)]

    def _json(self, value: object) -> str:
        return self._masked(msgspec.json.encode(value).decode())

    def _masked(self, text: str) -> str:
        return redact(text, self._settings.secrets)


def _joined(found: Judgement, before: Judgement) -> Judgement:
    """With what was found before in the runs."""
    findings = (each for each in before.findings if each.rule in run_rules.RULES)
    silent = (each for each in before.silent if each.rule in run_rules.RULES)
    return Judgement((*found.findings, *findings), (*found.silent, *silent))


def _is_news(row: AlertRow, finding: Finding, now: float) -> bool:
    return finding.severity != row.severity or now - row.seen_at >= NOTED_S


def _standing(row: AlertRow | None) -> Standing | None:
    if row is None:
        return None
    return Standing(
        rule=row.rule,
        state=row.state,
        severity=row.severity,
        resolved_at=row.resolved_at,
        snoozed_until=row.snoozed_until,
        is_held=row.is_held,
        memory=msgspec.json.decode(row.memory, type=Memory),
    )
