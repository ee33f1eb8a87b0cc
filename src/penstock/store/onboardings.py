"""Onboardings: the states of sources that were proposed, their compliance checks, and legal holds.

Every move names the state that it leaves, so that of two who decide at once one does. The gates read the same
row (`gates/onboarding.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.gates.onboarding import CellState, Onboarding, SourceState, source_may_move
from penstock.jobs.job import JobState
from penstock.journal.event import Event
from penstock.journal.job_events import JobStopped
from penstock.journal.source_events import (
    SourceActivated,
    SourceApproved,
    SourceChecked,
    SourceLegalHold,
    SourceLegallyReleased,
    SourceOwned,
    SourceProposed,
    SourceRetired,
)
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.run_transitions import cancel_run

# What a hash stands for is kept up to this many characters.
LONGEST_TEXT = 200_000


class OnboardingRow(msgspec.Struct, frozen=True):
    """All that is known of a source's onboarding; `keys` is the configuration that was proposed, as JSON."""

    source: str
    source_id: int
    state: SourceState
    changed_at: float
    changed_by: str
    reason: str
    keys: str
    owner: str
    proposed_at: float | None
    proposed_by: str
    proposed_why: str
    approved_at: float | None
    approved_by: str
    activated_at: float | None
    activated_by: str
    robots_verdict: str
    robots_at: float | None
    terms_verdict: str
    terms_at: float | None
    terms_url: str
    terms_hash: str
    legal_hold_at: float | None
    legal_hold_by: str
    legal_hold_reason: str
    cell_state: CellState = ""
    cell: str = ""

    @property
    def facts(self) -> Onboarding:
        """The row as the gates read it."""
        return Onboarding(*(getattr(self, name) for name in Onboarding.__struct_fields__))


class CheckRow(msgspec.Struct, frozen=True):
    """One check of robots.txt or terms."""

    id: int
    subject: str
    verdict: str
    at: float
    actor: str
    reason: str
    url: str
    hash: str
    detail: str


class Check(msgspec.Struct, frozen=True):
    """A check that was made, to be written; `text` is what was read, and `hash` is the text's."""

    subject: str
    verdict: str
    url: str = ""
    hash: str = ""
    text: str = ""
    detail: str = ""


class Onboardings(Noun):
    """The verbs that move a source from its proposal to its end."""

    def all(self) -> list[OnboardingRow]:
        return self._db.decoded("onboardings", list[OnboardingRow], key=None)

    def get(self, key: str) -> OnboardingRow | None:
        return next(iter(self._db.decoded("onboardings", list[OnboardingRow], key=key)), None)

    def checks(self, source_id: int, limit: int = 50) -> list[CheckRow]:
        """The newest first."""
        about = {"source_id": source_id, "limit": limit}
        return self._db.decoded("compliance_checks", list[CheckRow], **about)

    def text(self, hash_: str) -> str | None:
        """What a check has read."""
        found = self._db.value("compliance_text", hash=hash_)
        return None if found is None else str(found)

    def trials(self, source_id: int, since: float, limit: int = 20) -> list[int]:
        """The trial runs since then, the newest first."""
        found: list[int] = self._db.json("trials", source_id=source_id, since=since, limit=limit)
        return found

    def propose(
        self,
        source_id: int,
        leaves: SourceState,
        keys: str,
        owner: str,
        actor: str,
        reason: str,
    ) -> bool:
        """Propose a source that nobody knows yet, or one that was retired; False if somebody was faster."""
        with self._db.writing() as now:
            self._db.lock_lanes([source_id])
            if self._db.value("onboarding_state_of", source_id=source_id) is None:
                self._begin(source_id, SourceState.PROPOSED, now, actor)
                leaves = SourceState.PROPOSED
            values = {"keys": keys, "owner": owner}
            is_moved = self._moved("propose_if_in", source_id, leaves, now, actor, reason, **values)
            if is_moved:
                self._tell(SourceProposed(reason), source_id, now, actor)
            return is_moved

    def approve(self, source_id: int, begins: SourceState, actor: str, reason: str) -> bool:
        """Let a proposed source have trial runs."""
        with self._db.writing() as now:
            self._db.lock_lanes([source_id])
            self._begin(source_id, begins, now, actor)
            leaves = SourceState.PROPOSED
            if not self._moved("approve_if_in", source_id, leaves, now, actor, reason):
                return False
            self._tell(SourceApproved(reason), source_id, now, actor)
            return True

    def activate(self, source_id: int, trial: int, actor: str, reason: str) -> bool:
        """Let a source that was tried be ingested."""
        with self._db.writing() as now:
            self._db.lock_lanes([source_id])
            leaves = SourceState.TRIAL
            if not self._moved("activate_if_in", source_id, leaves, now, actor, reason):
                return False
            self._tell(SourceActivated(reason, trial), source_id, now, actor)
            return True

    def retire(self, source_id: int, begins: SourceState, actor: str, reason: str) -> int | None:
        """Start nothing more of a source, and cancel its unfinished runs in the same transaction.

        Answers how many they were; None if it is retired already.
        """
        with self._db.writing() as now:
            self._db.lock_lanes([source_id])
            self._begin(source_id, begins, now, actor)
            was = SourceState(self._db.value("onboarding_state_of", source_id=source_id))
            if not source_may_move(was, SourceState.RETIRED):
                return None
            self._moved("retire_if_in", source_id, was, now, actor, reason)
            ledger = Ledger(self._db, now)
            cancelled = 0
            for [run_id] in self._db.rows("unended_runs_of", source_id=source_id):
                cancelled += cancel_run(self._db, ledger, run_id, actor, reason or "retired")
            ledger.journal(SourceRetired(reason, was, cancelled), source_id, actor=actor)
            ledger.write()
            return cancelled

    def legal_hold(
        self, source_id: int, begins: SourceState, actor: str, reason: str
    ) -> int | None:
        """Stop everything of a source at once: running attempts lose their jobs, which wait behind the gate.

        Answers how many they were; None if it is on hold already.
        """
        with self._db.writing() as now:
            self._db.lock_lanes([source_id])
            self._begin(source_id, begins, now, actor)
            values = {"source_id": source_id, "now": now, "actor": actor, "reason": reason}
            if not self._db.do("hold_legally_if_open", **values):
                return None
            ledger = Ledger(self._db, now)
            jobs = self._db.rows("take_back_running_of", source_id=source_id, now=now)
            for job_id, run_id, stage, attempt in jobs:
                ledger.moved(run_id, stage, JobState.RUNNING, JobState.QUEUED)
                about = (source_id, run_id, job_id, attempt, actor)
                ledger.journal(JobStopped("its source is on legal hold"), *about)
            ledger.journal(SourceLegalHold(reason, len(jobs)), source_id, actor=actor)
            ledger.write()
            return len(jobs)

    def legal_release(self, source_id: int, actor: str, reason: str) -> bool:
        with self._db.writing() as now:
            if not self._db.do("release_legally_if_held", source_id=source_id):
                return False
            self._tell(SourceLegallyReleased(reason), source_id, now, actor)
            return True

    def own(self, source_id: int, begins: SourceState, owner: str, actor: str, reason: str) -> bool:
        """Name who is responsible for a source; False if that is known."""
        with self._db.writing() as now:
            self._begin(source_id, begins, now, actor)
            if not self._db.do("set_owner", source_id=source_id, owner=owner):
                return False
            self._tell(SourceOwned(reason, owner), source_id, now, actor)
            return True

    def note_checks(
        self,
        source_id: int,
        begins: SourceState,
        checks: Sequence[Check],
        actor: str,
        reason: str,
        *,
        robots: str = "",
        terms: tuple[str, str, str] | None = None,
    ) -> None:
        """Write what was checked, with the texts; `robots` and `terms` are what that comes to for the gate.

        Where a check could not be made they are left out, and what was known goes on counting. `terms` is a
        verdict with the address and the hash of what was accepted.
        """
        with self._db.writing() as now:
            self._db.lock_lanes([source_id])
            self._begin(source_id, begins, now, actor)
            for each in checks:
                self._note_check(source_id, each, now, actor, reason)
            if robots:
                self._db.do("set_robots", source_id=source_id, verdict=robots, now=now)
            if terms is not None:
                verdict, url, hash_ = terms
                values = {"verdict": verdict, "url": url, "hash": hash_, "now": now}
                self._db.do("set_terms", source_id=source_id, **values)

    def _note_check(self, source_id: int, each: Check, now: float, actor: str, reason: str) -> None:
        if each.hash:
            content = each.text[:LONGEST_TEXT].replace("\0", "")
            self._db.do("keep_compliance_text", hash=each.hash, content=content)
        if each.subject == "terms" and each.url:
            self._db.do("remember_terms", source_id=source_id, url=each.url)
        about = {
            name: getattr(each, name) for name in ("subject", "verdict", "url", "hash", "detail")
        }
        values = {"source_id": source_id, "now": now, "actor": actor, "reason": reason}
        self._db.do("add_compliance_check", **values, **about)
        event = SourceChecked(reason, each.subject, each.verdict, each.url, each.hash)
        self._tell(event, source_id, now, actor)

    def _begin(self, source_id: int, state: SourceState, now: float, actor: str) -> None:
        begin_row(self._db, source_id, state, now, actor)

    def _moved(
        self,
        query: str,
        source_id: int,
        leaves: SourceState,
        now: float,
        actor: str,
        reason: str,
        **more: str,
    ) -> bool:
        values = {"source_id": source_id, "leaves": leaves, "now": now, "actor": actor}
        return bool(self._db.do(query, **values, reason=reason, **more))

    def _tell(self, event: Event, source_id: int, now: float, actor: str) -> None:
        ledger = Ledger(self._db, now)
        ledger.journal(event, source_id, actor=actor)
        ledger.write()


def begin_row(db: Database, source_id: int, state: SourceState, now: float, actor: str) -> None:
    """A row for a source that has none yet, in the state that it is in without one."""
    if db.value("onboarding_state_of", source_id=source_id) is not None:
        return
    is_proposed = state is SourceState.PROPOSED
    db.do(
        "begin_onboarding",
        source_id=source_id,
        state=state,
        now=now,
        actor=actor,
        proposed_at=now if is_proposed else None,
        proposed_by=actor if is_proposed else "",
    )


def add_proposals(
    db: Database, ledger: Ledger, found: Sequence[tuple[str, str, str, str, int]]
) -> None:
    """What pipelines discovered: (key, keys as JSON, reason, by which source, run).

    Only sources that nobody knows: whatever was decided about one is not asked again.
    """
    keys = sorted({each[0] for each in found})
    before: dict[str, int] = db.json("source_ids")
    db.do("add_sources", keys=to_json([key for key in keys if key not in before]), now=ledger.now)
    known: dict[str, int] = db.json("source_ids")
    for key, text, reason, by, run_id in found:
        if key in before:
            continue
        actor = f"pipeline of {by}"
        about = {"source_id": known[key], "now": ledger.now, "actor": actor, "reason": reason}
        if db.do("propose_source", keys=text, **about):
            ledger.journal(SourceProposed(reason, by), known[key], run_id, actor=actor)
