"""Canaries: which release performs which share of a source, and what came of its pages and the control's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from penstock.errors import Refused, Remedy
from penstock.jobs.canary.guardrails import Limits, Look, PageSample
from penstock.jobs.canary.share import Arm
from penstock.jobs.effects.samples import Sample
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.journal.canary_events import (
    CanaryEnded,
    CanaryPassed,
    CanaryRolledBack,
    CanaryStarted,
    CanaryStopped,
    CanaryWidened,
)
from penstock.journal.event import Event
from penstock.store.database import LAST_ID, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.runs import Runs

CanaryState = Literal["active", "passed", "full", "stopping", "stopped", "ended"]
CanaryShare = Literal["pages", "sources"]


class CanarySource(msgspec.Struct, frozen=True):
    """A source of a canary. `plans` are those of its release, for each kind of run, as JSON."""

    source_id: int
    is_in_share: bool
    version: str
    plans: str


class CanaryRow(msgspec.Struct, array_like=True, frozen=True):
    """A canary as it stands."""

    id: int
    release: str
    share: CanaryShare
    percent: float
    salt: str
    state: CanaryState
    limits: Limits
    looks: int
    look: Look | None
    began_at: float
    ended_at: float | None
    actor: str
    reason: str
    end_reason: str

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


class CanaryRun(msgspec.Struct, frozen=True):
    """A run of a canary, or one that it is compared with."""

    id: int
    source_id: int
    of_run_id: int | None
    arm: Arm
    state: str
    kind: str
    for_drains: bool
    inserted: int
    updated: int
    unchanged: int

    @property
    def is_ended(self) -> bool:
        return self.state in ("completed", "partial", "failed", "cancelled")

    @property
    def saved(self) -> int:
        return self.inserted + self.updated + self.unchanged


class CanaryAlert(msgspec.Struct, array_like=True, frozen=True):
    """An alert that opened on a source of a canary since it began."""

    id: int
    rule: str
    severity: str
    source: str


class Canaries(Noun):
    """The verbs of canaries. A run that starts asks for them itself: see `canary_parts`."""

    def begin(
        self,
        release: str,
        share: CanaryShare,
        percent: float,
        salt: str,
        limits: Limits,
        sources: Sequence[CanarySource],
        actor: str,
        reason: str,
    ) -> int:
        """Have a release perform a share from the next run on; refused where another one does."""
        with self._db.writing() as now:
            self._db.lock_lanes(sorted(each.source_id for each in sources))
            self._refuse_second(sources)
            canary_id: int = self._db.value(
                "add_canary",
                release=release, share=share, percent=percent, salt=salt, limits=to_json(limits),
                now=now, actor=actor, reason=reason,
            )  # fmt: skip
            for each in sources:
                self._db.do(
                    "add_canary_source", canary_id=canary_id, **msgspec.structs.asdict(each)
                )
            of = len(sources) if share == "pages" else sum(each.is_in_share for each in sources)
            event = CanaryStarted(canary_id, release, share, percent, of, reason)
            self._journal(now, event, actor)
            return canary_id

    def get(self, canary_id: int) -> CanaryRow | None:
        rows = self._db.rows("canary", id=canary_id)
        return _row(rows[0]) if rows else None

    def newest(self, limit: int = 50, before_id: int | None = None) -> list[CanaryRow]:
        before = LAST_ID if before_id is None else before_id
        return [_row(row) for row in self._db.rows("canaries", before_id=before, limit=limit)]

    def open(self) -> list[CanaryRow]:
        """Those that perform something, or are being rolled back."""
        return [_row(row) for row in self._db.rows("open_canaries")]

    def sources(self, canary_id: int) -> list[tuple[int, str, bool, str]]:
        """Their ids and keys, whether they are in the share, and the release's version of their pipelines."""
        rows = self._db.rows("canary_sources", canary_id=canary_id)
        return [(row[0], row[1], bool(row[2]), row[3]) for row in rows]

    def runs(self, canary_id: int) -> list[CanaryRun]:
        arms: dict[int, Arm] = dict(self._db.rows("canary_runs", canary_id=canary_id))
        rows = sorted(Runs(self._db).by_id(list(arms)), key=lambda row: row.id) if arms else []
        return [
            CanaryRun(
                *(row.id, row.source_id, row.of_run_id, arms[row.id], row.state, row.kind),
                *(row.for_drains, row.inserted, row.updated, row.unchanged),
            )
            for row in rows
        ]

    def pages(self, canary_id: int) -> dict[Arm, int]:
        """How many pages each of the two has come to an end with so far."""
        found: dict[Arm, int] = {"canary": 0, "control": 0}
        for _, arm, pages in self._db.rows("canary_pages", canary_id=canary_id):
            found[arm] += int(pages or 0)
        return found

    def samples(self, canary: CanaryRow) -> list[PageSample]:
        """What came of every page so far. Of what both have performed, only pages that both are done with."""
        runs = self.runs(canary.id)
        found = [page for run in runs for page in self._of_run(canary, run)]
        if not any(page.pair for page in found):
            return found
        both = {page.pair for page in found if page.is_canary}
        both &= {page.pair for page in found if not page.is_canary}
        return [page for page in found if page.pair in both]

    def _of_run(self, canary: CanaryRow, run: CanaryRun) -> Iterable[PageSample]:
        pages: dict[int, PageSample] = {}
        live_id = run.of_run_id if run.kind == "replay" else run.id
        # Where the control is a replay of the canary's own run, each page was performed by both.
        is_paired = canary.share == "sources"
        for job_id, stage, key, state in self._db.rows("canary_page_jobs", run_id=run.id):
            page = PageSample(run.source_id, run.arm == "canary", state == "quarantined")
            page.name = f"{stage} {key}"
            page.pair = f"{live_id} {page.name}" if is_paired else ""
            pages[job_id] = page
        candidates = self._db.rows("canary_candidates", run_id=run.id)
        parents: dict[int, int | None] = {job_id: parent_id for job_id, _, parent_id in candidates}
        for job_id, state, _ in candidates:
            top = _page_above(job_id, pages, parents, {})
            if top is not None and state == "quarantined":
                pages[top].has_failed = True
            elif top is not None and state in OPEN_JOB_STATES:
                # Nobody knows yet what will have come of it.
                del pages[top]
        climbed: dict[int, int | None] = {}
        for job_id, text in self._db.rows("canary_samples", run_id=run.id):
            top = _page_above(job_id, pages, parents, climbed)
            if top is not None:
                _add(pages[top], msgspec.json.decode(text, type=Sample))
        return pages.values()

    def note_look(self, canary_id: int, look: Look) -> bool:
        """Write a look at an active canary; False if another leader has taken it."""
        with self._db.writing():
            about = {"look_number": look.number, "look": to_json(look)}
            return self._db.value("note_canary_look", id=canary_id, **about) is not None

    def has_passed(self, canary_id: int, reason: str) -> bool:
        return self._move(canary_id, "active", "passed", CanaryPassed(reason, canary_id), "")

    def widen(self, canary_id: int, before: CanaryState, actor: str, reason: str) -> bool:
        """Have the release perform all runs of the canary's sources."""
        return self._move(canary_id, before, "full", CanaryWidened(reason, canary_id), actor)

    def stop(self, canary_id: int, before: CanaryState, actor: str, reason: str) -> bool:
        """Begin to take it back: from now on its release is given nothing new."""
        return self._move(canary_id, before, "stopping", CanaryStopped(reason, canary_id), actor)

    def rolled_back(self, canary_id: int, undone: int, started: int) -> bool:
        event = CanaryRolledBack(canary_id, undone, started)
        return self._move(canary_id, "stopping", "stopped", event, "", keeps_reason=True)

    def end(self, canary_id: int, before: CanaryState, actor: str, reason: str) -> bool:
        """Give it nothing new; what it saved stays."""
        return self._move(canary_id, before, "ended", CanaryEnded(reason, canary_id), actor)

    def removals(self, run_id: int) -> int:
        """How many records a replay, which has ended and is sealed, would remove."""
        return int(self._db.value("staged_removals", run_id=run_id))

    def alerts(self, canary: CanaryRow) -> list[CanaryAlert]:
        """What has opened on its sources since it began."""
        about = {"since": canary.began_at, "is_full": canary.state == "full"}
        rows = self._db.rows("alerts_of_canary", canary_id=canary.id, **about)
        return [CanaryAlert(*row) for row in rows]

    def forget_samples(self, canary_id: int) -> None:
        """What was measured is no longer needed: the last look has the figures."""
        for run in self.runs(canary_id):
            with self._db.writing():
                self._db.do("drop_canary_samples", run_id=run.id)

    def _move(
        self,
        canary_id: int,
        before: CanaryState,
        state: CanaryState,
        event: Event,
        actor: str,
        *,
        keeps_reason: bool = False,
    ) -> bool:
        with self._db.writing() as now:
            known = self.get(canary_id)
            reason = known.end_reason if keeps_reason and known else getattr(event, "reason", "")
            ended_at = now if state in ("stopped", "ended") else None
            about = {"state": state, "reason": reason, "ended_at": ended_at, "before": before}
            if self._db.value("move_canary_if", id=canary_id, **about) is None:
                return False
            self._journal(now, event, actor)
            return True

    def _journal(self, now: float, event: Event, actor: str) -> None:
        ledger = Ledger(self._db, now)
        ledger.journal(event, actor=actor)
        ledger.write()

    def _refuse_second(self, sources: Sequence[CanarySource]) -> None:
        for each in sources:
            rows = self._db.rows("canary_of_source", source_id=each.source_id)
            if rows and each.is_in_share:
                canary_id = rows[0][0]
                raise Refused(
                    f"canary {canary_id} has a part of the same source",
                    "end or stop that one first",
                    code="canary_open",
                    remedy=Remedy("canaries.get", canary_id),
                )


def _row(row: Sequence[Any]) -> CanaryRow:
    told = [*row]
    told[6], told[8] = msgspec.json.decode(row[6]), msgspec.json.decode(row[8])
    return msgspec.convert(told, CanaryRow)


def _page_above(
    job_id: int | None,
    pages: Mapping[int, PageSample],
    parents: Mapping[int, int | None],
    known: dict[int, int | None],
) -> int | None:
    """The page that a job came from; a page is its own."""
    path: list[int] = []
    at = job_id
    while at is not None and at not in pages and at not in known:
        path.append(at)
        at = parents.get(at)
    top = known.get(at, at) if at is not None and at not in pages else at
    known.update(dict.fromkeys(path, top))
    return top


def _add(page: PageSample, sample: Sample) -> None:
    page.keys.update(sample.keys)
    page.rejected += sample.rejected
    page.scores += sample.scores
    page.scored += sample.scored


def grouped(runs: Iterable[CanaryRun]) -> dict[int, list[CanaryRun]]:
    """By source."""
    found: dict[int, list[CanaryRun]] = defaultdict(list)
    for run in runs:
        found[run.source_id].append(run)
    return dict(found)
