"""The report of a source: the evidence of its onboarding, made of what the store has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.figures import RunFiguresView, run_figures_view
from penstock.app.views.onboarding import (
    ComplianceView,
    OnboardingView,
    PerformanceView,
    SourceReportView,
    TrialView,
    compliance_check_view,
)
from penstock.gates.onboarding import Gap, Onboarding, SourceState, gaps, is_checked
from penstock.jobs.run import RunOptions

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.onboardings import OnboardingRow

RUNS = 20
EVENTS = 100
# Events about a source that say how it came to be where it is.
HISTORY = frozenset(
    f"source.{what}"
    for what in (
        "proposed approved activated retired owner_changed compliance_checked legal_hold legal_release "
        "paused resumed held unheld degraded recovered"
    ).split()
)


def facts_of(known: OnboardingRow | None) -> Onboarding | None:
    return None if known is None else known.facts


def gaps_of(project: Nouns, known: OnboardingRow | None) -> list[Gap]:
    """What is missing before a source may be fetched, whether or not anybody asks for it yet."""
    return gaps(facts_of(known), project.compliance, project.connection.now())


def asked_gaps(project: Nouns, known: OnboardingRow | None) -> list[Gap]:
    """The same, if it counts for this source."""
    is_asked = is_checked(facts_of(known), project.compliance)
    return gaps_of(project, known) if is_asked else []


def onboarding_view(project: Nouns, key: str, known: OnboardingRow | None) -> OnboardingView:
    state = project.source_state(key, known)
    lacks = [each.words for each in asked_gaps(project, known)]
    is_configured = key in project.settings.sources
    if known is None:
        return OnboardingView(
            source=key,
            state=state,
            owner="",
            reason="",
            keys={},
            is_configured=is_configured,
            proposed_at=None,
            proposed_by="",
            proposed_why="",
            approved_at=None,
            approved_by="",
            activated_at=None,
            activated_by="",
            changed_at=None,
            changed_by="",
            compliance_gaps=lacks,
            legal_hold_at=None,
            legal_hold_reason="",
        )
    same = (
        *("owner", "reason", "proposed_at", "proposed_by", "proposed_why", "approved_at"),
        *("approved_by", "activated_at", "activated_by", "changed_at", "changed_by"),
        *("legal_hold_at", "legal_hold_reason"),
    )
    return OnboardingView(
        source=key,
        state=state,
        keys=msgspec.json.decode(known.keys) if known.keys else {},
        is_configured=is_configured,
        compliance_gaps=lacks,
        **{name: getattr(known, name) for name in same},
    )


def compliance_view(project: Nouns, key: str, known: OnboardingRow | None) -> ComplianceView:
    terms = project.compliance
    robots_at = None if known is None else known.robots_at
    terms_at = None if known is None else known.terms_at
    checks = [] if known is None else project.connection.onboardings.checks(known.source_id)
    return ComplianceView(
        source=key,
        is_required=is_checked(facts_of(known), terms),
        gaps=[each.words for each in gaps_of(project, known)],
        owner="" if known is None else known.owner,
        robots_verdict="" if known is None else known.robots_verdict,
        robots_at=robots_at,
        robots_stale_at=None if robots_at is None else robots_at + terms.robots_max_age_s,
        terms_verdict="" if known is None else known.terms_verdict,
        terms_url="" if known is None else known.terms_url,
        terms_at=terms_at,
        terms_stale_at=None if terms_at is None else terms_at + terms.terms_max_age_s,
        legal_hold_at=None if known is None else known.legal_hold_at,
        legal_hold_by="" if known is None else known.legal_hold_by,
        legal_hold_reason="" if known is None else known.legal_hold_reason,
        checks=[compliance_check_view(each) for each in checks],
    )


def trial_options(project: Nouns, pages: int | None) -> RunOptions:
    """What a trial run is asked for."""
    asked = project.settings.onboarding
    return RunOptions(
        is_trial=True, pages=pages or asked.trial_pages, trial_requests=asked.trial_requests
    )


def trials_of(project: Nouns, key: str, known: OnboardingRow | None) -> list[TrialView]:
    """The trial runs since the source was proposed last, the newest first."""
    if known is None or known.proposed_at is None:
        return []
    store = project.connection
    ids = store.onboardings.trials(known.source_id, known.proposed_at)
    rows = {row.id: row for row in store.runs.by_id(ids)} if ids else {}
    histograms = store.rollups.of_runs(list(rows)) if rows else {}
    found = []
    for run_id in ids:
        row = rows[run_id]
        figures = run_figures_view(row, histograms.get(run_id, {}))
        is_ended = row.finished_at is not None
        found.append(
            TrialView(
                run_id=run_id,
                source=key,
                state=row.state,
                started_at=row.started_at,
                took_s=(figures.took_s or 0.0) if is_ended else None,
                pages=row.pages,
                records=row.inserted + row.updated + row.unchanged,
                rejected=row.rejected,
                failed=row.quarantined,
                requests=row.requests,
                fetch_p95_s=figures.fetch_p95_s,
                quality=store.replays.staged_quality(run_id),
                end_reason=row.end_reason or "",
                pages_limit=row.options.pages,
                requests_limit=row.options.trial_requests,
            )
        )
    return found


def report(project: Nouns, key: str) -> SourceReportView:
    """All the evidence that there is of a source."""
    store = project.connection
    known = store.onboardings.get(key)
    runs = project.figures.runs(key, limit=RUNS).items
    events = project.journal.list(source=key, kind="source", limit=EVENTS).items
    return SourceReportView(
        source=key,
        at=store.now(),
        onboarding=onboarding_view(project, key, known),
        compliance=compliance_view(project, key, known),
        trials=trials_of(project, key, known),
        performance=_performance(runs),
        runs=list(runs),
        drift=list(project.journal.list(source=key, kind="schema.drifted", limit=RUNS).items),
        budgets=list(project.budgets.list(source=key).items),
        history=[each for each in events if each.kind in HISTORY],
    )


def _performance(runs: Sequence[RunFiguresView]) -> PerformanceView:
    saved = sum(each.new + each.changed + each.unchanged for each in runs)
    rejected = sum(each.rejected for each in runs)
    judged = saved + rejected
    latencies = [each.fetch_p95_s for each in runs if each.fetch_p95_s is not None]
    scores = [each.quality for each in runs if each.quality is not None]
    return PerformanceView(
        runs=len(runs),
        failed_runs=sum(each.outcome == "failed" for each in runs),
        saved=saved,
        rejected=rejected,
        accept_pct=round(100 * saved / judged, 1) if judged else None,
        failed_jobs=sum(each.failed for each in runs),
        requests=sum(each.fetches for each in runs),
        fetch_p95_s=max(latencies, default=None),
        quality=sum(scores) / len(scores) if scores else None,
    )


def state_words(state: str) -> str:
    return "in trial" if state == SourceState.TRIAL else state
