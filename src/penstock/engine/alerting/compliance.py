"""Compliance: which approved sources may not be fetched any more, or will soon not be, by source."""

from __future__ import annotations

from penstock.alerts.history import ComplianceFacts
from penstock.gates.onboarding import ComplianceTerms, Onboarding, SourceState, gaps, is_checked
from penstock.store.store import Store

EVERY_S = 60.0
FETCHED = (SourceState.TRIAL, SourceState.ACTIVE)


class ComplianceWatch:
    """What was read last; it is read again now and then."""

    def __init__(self, store: Store, terms: ComplianceTerms) -> None:
        self._store = store
        self._terms = terms
        self._looked_at = float("-inf")
        self._known: dict[str, Onboarding] = {}

    def look(self, now: float) -> dict[str, ComplianceFacts]:
        """Facts of the sources that a person has approved; on legal hold, a person has stopped them."""
        if now - self._looked_at >= EVERY_S:
            self._known = {row.source: row.facts for row in self._store.onboardings.all()}
            self._looked_at = now
        return {
            key: _facts(known, self._terms, now)
            for key, known in self._known.items()
            if known.state in FETCHED
            and known.legal_hold_at is None
            and is_checked(known, self._terms)
        }


def _facts(known: Onboarding, terms: ComplianceTerms, now: float) -> ComplianceFacts:
    stale_at = [
        checked_at + max_age_s
        for checked_at, max_age_s in (
            (known.robots_at, terms.robots_max_age_s),
            (known.terms_at, terms.terms_max_age_s),
        )
        if checked_at is not None
    ]
    found = tuple(each.words for each in gaps(known, terms, now))
    over = [each for each in stale_at if each <= now]
    checked_at = max(known.changed_at, known.robots_at or 0.0, known.terms_at or 0.0)
    return ComplianceFacts(
        problems=found,
        since=min(over, default=checked_at),
        stale_at=min(stale_at, default=None),
    )
