"""The report of a source, as text and as Markdown: the same lines, dressed differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli.render.wording import count, duration, harmless, local_time

if TYPE_CHECKING:
    from penstock.app.views.budgets import BudgetView
    from penstock.app.views.onboarding import (
        ComplianceView,
        OnboardingView,
        SourceReportView,
        TrialView,
    )

# A section: its title, facts by name, and rows under their columns.
Table = tuple[Sequence[str], list[Sequence[str]]]
Section = tuple[str, list[tuple[str, str]], Table | None]
NOTHING = "none"


def sections(report: SourceReportView) -> Iterator[Section]:
    """What the report says, in its order."""
    seen, compliance = report.onboarding, report.compliance
    yield "Decisions", _decisions(seen), None
    yield "Compliance", _compliance(compliance), _checks(compliance)
    trials: list[Sequence[str]] = [_trial(each) for each in report.trials]
    yield "Trials", [], (TRIAL_COLUMNS, trials)
    yield "Last runs", _performance(report), _runs(report)
    drift: list[Sequence[str]] = [(local_time(e.at), e.detail) for e in report.drift]
    yield "Drift", [], (("at", "what"), drift)
    budgets: list[Sequence[str]] = [
        (_scope(each), each.measure, each.period, f"{each.used:g}", f"{each.bound:g}")
        for each in report.budgets
    ]
    yield "Budgets", [], (("of", "measure", "period", "used", "bound"), budgets)
    history: list[Sequence[str]] = [
        (local_time(e.at), e.kind, e.actor, e.detail) for e in reversed(report.history)
    ]
    yield "History", [], (("at", "event", "by", "what"), history)


TRIAL_COLUMNS = (
    *("run", "state", "took", "pages", "records", "rejected", "failed", "requests", "p95"),
    *("quality", "limits"),
)


def _decisions(seen: OnboardingView) -> list[tuple[str, str]]:
    found = [("state", seen.state), ("owner", seen.owner or NOTHING)]
    if seen.proposed_at is not None:
        found.append(("proposed", _said(seen.proposed_at, seen.proposed_by, seen.proposed_why)))
    if seen.approved_at is not None:
        found.append(("approved", _said(seen.approved_at, seen.approved_by, "")))
    if seen.activated_at is not None:
        found.append(("activated", _said(seen.activated_at, seen.activated_by, "")))
    if seen.changed_at is not None:
        found.append(("last decision", _said(seen.changed_at, seen.changed_by, seen.reason)))
    if seen.legal_hold_at is not None:
        found.append(("legal hold", _said(seen.legal_hold_at, "", seen.legal_hold_reason)))
    found += [(f"key {name}", str(value)) for name, value in seen.keys.items()]
    return found


def _compliance(seen: ComplianceView) -> list[tuple[str, str]]:
    robots = seen.robots_verdict or "never checked"
    terms = seen.terms_verdict or "never accepted"
    return [
        ("counts", "yes" if seen.is_required else "no: the source was never proposed"),
        ("missing", ", ".join(seen.gaps) or "nothing"),
        ("robots.txt", _until(robots, seen.robots_at, seen.robots_stale_at)),
        ("terms", _until(terms, seen.terms_at, seen.terms_stale_at)),
        *([("terms at", seen.terms_url)] if seen.terms_url else []),
    ]


def _checks(seen: ComplianceView) -> Table:
    rows: list[Sequence[str]] = [
        (
            *(local_time(each.at), each.subject, each.verdict.replace("_", " "), each.actor),
            *(each.hash[:12], each.url, each.detail or each.reason),
        )
        for each in seen.checks
    ]
    return ("at", "of", "verdict", "by", "hash", "url", "detail"), rows


def _trial(each: TrialView) -> Sequence[str]:
    limits = f"{count(each.pages_limit or 0, 'page')}, {count(each.requests_limit or 0, 'request')}"
    return (
        *(str(each.run_id), each.state, "" if each.took_s is None else duration(each.took_s)),
        *(str(each.pages), str(each.records), str(each.rejected), str(each.failed)),
        *(str(each.requests), _seconds(each.fetch_p95_s), _number(each.quality), limits),
    )


def _performance(report: SourceReportView) -> list[tuple[str, str]]:
    seen = report.performance
    if not seen.runs:
        return []
    accepted = "" if seen.accept_pct is None else f" ({seen.accept_pct:g} % accepted)"
    return [
        ("runs", f"{seen.runs}, {seen.failed_runs} failed"),
        ("records", f"{seen.saved} saved, {seen.rejected} rejected{accepted}"),
        ("failed jobs", str(seen.failed_jobs)),
        ("requests", str(seen.requests)),
        ("slowest p95", _seconds(seen.fetch_p95_s) or NOTHING),
        ("quality", _number(seen.quality) or NOTHING),
    ]


def _runs(report: SourceReportView) -> Table:
    rows: list[Sequence[str]] = [
        (
            *(str(each.id), each.kind, each.outcome, str(each.new), str(each.changed)),
            *(str(each.rejected), str(each.failed), _seconds(each.fetch_p95_s)),
            _number(each.quality),
        )
        for each in report.runs
    ]
    columns = ("run", "kind", "outcome", "new", "changed", "rejected", "failed", "p95", "quality")
    return columns, rows


def _scope(each: BudgetView) -> str:
    return f"run {each.run}" if each.run is not None else each.source or "project"


def _said(at: float, actor: str, reason: str) -> str:
    by = f" by {actor}" if actor else ""
    return f"{local_time(at)}{by}{f': {reason}' if reason else ''}"


def _until(verdict: str, at: float | None, stale_at: float | None) -> str:
    if at is None or stale_at is None:
        return verdict
    return f"{verdict} ({local_time(at)}, counts until {local_time(stale_at)})"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2g} s"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def markdown(report: SourceReportView) -> str:
    """The report as a Markdown page. What strangers wrote stays text: nothing of it becomes markup."""
    lines = [f"# Onboarding of {_quoted(report.source)}", "", f"As of {local_time(report.at)}.", ""]
    for title, facts, table in sections(report):
        lines += [f"## {title}", ""]
        lines += [f"- **{_quoted(name)}**: {_quoted(value)}" for name, value in facts]
        lines += [""] if facts else []
        if table is not None:
            lines += [*_markdown_table(*table), ""]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_table(columns: Sequence[str], rows: list[Sequence[Any]]) -> list[str]:
    if not rows:
        return ["None."]
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return [*head, *(f"| {' | '.join(_quoted(str(cell)) for cell in row)} |" for row in rows)]


_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>|#"})


def _quoted(text: str) -> str:
    return " ".join(harmless(text).split()).translate(_SPECIAL)
