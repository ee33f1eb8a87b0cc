"""Onboarding as front ends see it: where a source stands, its checks and trials, and the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.budgets import BudgetView
from penstock.app.views.figures import RunFiguresView
from penstock.app.views.journal import EventView
from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.onboardings import CheckRow


class ComplianceCheckView(View, frozen=True, kw_only=True):
    """One check of robots.txt or terms. `hash` is that of the text that was read, which is stored."""

    subject: str
    verdict: str
    at: Time
    actor: str
    reason: str
    url: str
    hash: str
    detail: str


class CheckedTextView(View, frozen=True, kw_only=True):
    """What a check has read: a robots.txt, or the words of the terms, up to 200,000 characters."""

    source: str
    subject: str
    url: str
    hash: str
    text: str


class ComplianceView(View, frozen=True, kw_only=True):
    """What a source may be fetched by. `gaps` is what is missing; it counts if `is_required`.

    The dates are those of the last check that could be made; after `robots_stale_at` and `terms_stale_at`
    they count no more.
    """

    source: str
    is_required: bool
    gaps: list[str]
    owner: str
    robots_verdict: str
    robots_at: Time | None
    robots_stale_at: Time | None
    terms_verdict: str
    terms_url: str
    terms_at: Time | None
    terms_stale_at: Time | None
    legal_hold_at: Time | None
    legal_hold_by: str
    legal_hold_reason: str
    checks: list[ComplianceCheckView]


class OnboardingView(View, frozen=True, kw_only=True):
    """Where a source stands: `proposed`, `trial`, `active` or `retired`.

    `keys` is the configuration that was proposed; approval writes it into penstock.yaml. A source that was
    never proposed has neither dates nor keys.
    """

    source: str
    state: str
    owner: str
    reason: str
    keys: dict[str, Any]
    is_configured: bool
    proposed_at: Time | None
    proposed_by: str
    proposed_why: str
    approved_at: Time | None
    approved_by: str
    activated_at: Time | None
    activated_by: str
    changed_at: Time | None
    changed_by: str
    compliance_gaps: list[str]
    legal_hold_at: Time | None
    legal_hold_reason: str


class TrialView(View, frozen=True, kw_only=True):
    """A trial run: what it found. Its records are staged, and are not among the records of the project."""

    run_id: int = msgspec.field(name="run")
    source: str
    state: str
    started_at: Time | None
    took_s: float | None
    pages: int
    records: int
    rejected: int
    failed: int
    requests: int
    fetch_p95_s: float | None
    quality: float | None
    end_reason: str
    pages_limit: int | None
    requests_limit: int | None


class PerformanceView(View, frozen=True, kw_only=True):
    """What the last runs of a source came to together."""

    runs: int
    failed_runs: int
    saved: int
    rejected: int
    accept_pct: float | None
    failed_jobs: int
    requests: int
    fetch_p95_s: float | None
    quality: float | None


class SourceReportView(View, frozen=True, kw_only=True):
    """The evidence of a source's onboarding: decisions, checks, trials, runs, drift and budgets."""

    source: str
    at: Time
    onboarding: OnboardingView
    compliance: ComplianceView
    trials: list[TrialView]
    performance: PerformanceView
    runs: list[RunFiguresView]
    drift: list[EventView]
    budgets: list[BudgetView]
    history: list[EventView]


def compliance_check_view(row: CheckRow) -> ComplianceCheckView:
    known = msgspec.structs.asdict(row)
    del known["id"]
    return ComplianceCheckView(**known)
