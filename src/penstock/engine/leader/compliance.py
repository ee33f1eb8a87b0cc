"""Compliance: with `onboarding.recheck`, robots.txt and terms are checked before the last check is stale.

Done by the host that leads, one source after the other. A thread reads, and touches nothing of the store;
what it has read is judged by what is known by then, so that an acceptance meanwhile counts.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import TYPE_CHECKING

from penstock.gates.onboarding import ComplianceTerms, SourceState, is_checked
from penstock.http.failures import FetchError
from penstock.project import Project
from penstock.project.backfills import PENSTOCK
from penstock.settings import SourceSettings
from penstock.store.onboardings import OnboardingRow
from penstock.store.store import Store

if TYPE_CHECKING:
    from penstock.project.compliance import Seen

# With so much of its time gone, a check is made again: there are days left to mend what is wrong.
DUE_AT = 0.5
LOOK_S = 60.0
# One that could not be made is made again after this, or a tenth of the time that checks hold.
RETRY_S = 3600.0
REASON = "the last check was about to go stale"
FETCHED = (SourceState.TRIAL, SourceState.ACTIVE)


class ComplianceChore:
    """Checks what is due. Nothing of a source that was not approved, or is on legal hold, is asked for."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store
        self._is_on = project.settings.onboarding.recheck
        self._ended: queue.SimpleQueue[tuple[SourceSettings, Seen | None]] = queue.SimpleQueue()
        self._is_reading = False
        self._tried: dict[str, float] = {}
        self._look_at = float("-inf")

    def look(self) -> None:
        """Write what was read, and read the next one."""
        if not self._is_on:
            return
        self._settle()
        now = self._project.clock.monotonic()
        if self._is_reading or now < self._look_at:
            return
        row = self._next(now)
        if row is None:
            self._look_at = now + LOOK_S
            return
        self._tried[row.source] = now
        self._begin(self._project.settings.sources[row.source], row.terms_url)

    def _next(self, now: float) -> OnboardingRow | None:
        terms = self._project.compliance
        patience_s = min(RETRY_S, terms.robots_max_age_s / 10, terms.terms_max_age_s / 10)
        for row in self._store.onboardings.all():
            is_resting = now - self._tried.get(row.source, float("-inf")) < patience_s
            if not is_resting and self._is_due(row, terms):
                return row
        return None

    def _is_due(self, row: OnboardingRow, terms: ComplianceTerms) -> bool:
        if row.source not in self._project.settings.sources or row.state not in FETCHED:
            return False
        if row.legal_hold_at is not None or not is_checked(row.facts, terms):
            return False
        now = self._store.now()
        has_terms = bool(row.terms_url) and row.terms_verdict == "accepted"
        return _is_due(row.robots_at, terms.robots_max_age_s, now) or (
            has_terms and _is_due(row.terms_at, terms.terms_max_age_s, now)
        )

    def _begin(self, source: SourceSettings, terms_url: str) -> None:
        # Who only schedules carries no HTTP until there is something to read.
        from penstock.project.compliance import read

        def work() -> None:
            seen = None
            try:
                seen = asyncio.run(read(source, terms_url))
            except FetchError:
                pass  # an address that may not be asked: `penstock sources check` says which
            finally:
                self._ended.put((source, seen))

        self._is_reading = True
        threading.Thread(target=work, name="penstock-compliance", daemon=True).start()

    def _settle(self) -> None:
        while not self._ended.empty():
            from penstock.project.compliance import judge

            source, seen = self._ended.get()
            self._is_reading = False
            known = self._store.onboardings.get(source.key)
            if seen is None or known is None or known.legal_hold_at is not None:
                continue
            found = judge(source, known, seen)
            about = (known.source_id, known.state, found.checks, PENSTOCK, REASON)
            self._store.onboardings.note_checks(*about, robots=found.robots, terms=found.terms)


def _is_due(checked_at: float | None, max_age_s: float, now: float) -> bool:
    return checked_at is None or now - checked_at >= DUE_AT * max_age_s
