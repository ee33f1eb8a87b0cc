"""What one transaction moved: counters and journal lines, gathered first and written in a few statements."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.jobs.job import Claimed, JobState, Owned, Unit
from penstock.jobs.run import RunKind, StageBounds
from penstock.journal.event import Event
from penstock.store.database import Database, to_json

if TYPE_CHECKING:
    from penstock.metrics.line import Amount

_STATES = tuple(JobState)
_PLACE = {state: index for index, state in enumerate(_STATES)}
COUNTS = (
    "inserted",
    "updated",
    "unchanged",
    "rejected",
    "retried",
    "throttled",
    "candidates_accepted",
    "candidates_rejected",
    "candidates_duplicate",
    "candidates_passed",
    "candidates_dropped",
    "pages_unchanged",
    "disallowed",
    "requests",
    "bytes",
    "seconds",
    "money",
    "pages_added",
    "candidates_added",
    "pages_missing",
)

_MEASURED = ("seconds", "money")
# The counters of runs that are summed by hour, too: as which measure, under which label.
_BY_HOUR = {
    "inserted": ("records", "new"),
    "updated": ("records", "changed"),
    "unchanged": ("records", "unchanged"),
    "rejected": ("rejected", ""),
    "requests": ("fetches", ""),
    "bytes": ("bytes", ""),
}


class StageFacts(msgspec.Struct, frozen=True):
    """`continues` is the run in which this stage's jobs may have been done already."""

    unit: Unit
    priority: int
    continues: int | None = None
    kind: RunKind = RunKind.FULL
    bounds: StageBounds | None = None


_decode_stages = msgspec.json.Decoder(dict[str, StageFacts]).decode


def event_data(event: Event) -> str | None:
    """What is stored of an event beside its kind; nothing where the kind says it all."""
    text = to_json(msgspec.to_builtins(event))
    return None if text == "{}" else text


class Ledger:
    """Collects the moves of one transaction; `write` puts them down before it commits."""

    def __init__(self, db: Database, now: float) -> None:
        self.now = now
        self._db = db
        self._stage_deltas: dict[tuple[int, str], list[int]] = {}
        self._run_deltas: dict[int, dict[str, float]] = defaultdict(
            lambda: dict.fromkeys(COUNTS, 0)
        )
        self._touched: set[tuple[int, str]] = set()
        self._measured: dict[int, dict[tuple[str, str], float]] = {}
        self._events: list[tuple[object, ...]] = []
        self._stages: dict[int, dict[str, StageFacts]] = {}

    def stages(self, run_id: int) -> dict[str, StageFacts]:
        if run_id not in self._stages:
            text = self._db.value("stages", run_id=run_id)
            self._stages[run_id] = _decode_stages(text)
        return self._stages[run_id]

    def made(self, run_id: int, stages: dict[str, StageFacts]) -> None:
        """A run that this transaction has made has these stages: nobody need ask."""
        self._stages[run_id] = stages

    def moved(self, run_id: int, stage: str, leaves: JobState, enters: JobState) -> None:
        delta = self._delta(run_id, stage)
        delta[_PLACE[leaves]] -= 1
        delta[_PLACE[enters]] += 1

    def all_moved(
        self, jobs: Iterable[Claimed | Owned], leaves: JobState, enters: JobState
    ) -> None:
        """The same for many: they are of few stages."""
        counts = Counter([(job.run_id, job.stage) for job in jobs])
        for (run_id, stage), many in counts.items():
            delta = self._delta(run_id, stage)
            delta[_PLACE[leaves]] -= many
            delta[_PLACE[enters]] += many

    def added(self, run_id: int, stage: str, unit: str) -> None:
        self._delta(run_id, stage)[_PLACE[JobState.QUEUED]] += 1
        if unit == "page":
            self._run_deltas[run_id]["pages_added"] += 1
        elif unit == "candidate":
            self._run_deltas[run_id]["candidates_added"] += 1

    def grown(self, run_id: int, stage: str) -> int:
        """By how many jobs a stage has grown in this transaction, as far as it is not counted yet."""
        return sum(self._stage_deltas.get((run_id, stage), ()))

    def touch(self, run_id: int) -> None:
        """Have a look at how this run goes on, although none of its jobs was moved."""
        self._touched.update((run_id, stage) for stage in self.stages(run_id))

    def count(self, run_id: int, name: str, by: float) -> None:
        # What is counted is a whole number, whatever it was added up as; a server's columns insist on it.
        self._run_deltas[run_id][name] += by if name in _MEASURED else round(by)
        if name in _BY_HOUR:
            self.measure(run_id, [(*_BY_HOUR[name], by)])

    def measure(self, run_id: int, amounts: Iterable[Amount]) -> None:
        """What the attempts of a run have measured: written as one row, and summed by hour later on."""
        measured = self._measured.setdefault(run_id, {})
        for measure, label, amount in amounts:
            measured[measure, label] = measured.get((measure, label), 0) + amount

    def journal(
        self,
        event: Event,
        source_id: int | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        attempt: int | None = None,
        actor: str = "",
        *,
        worker: str | None = None,
    ) -> None:
        """An event, to be written with the rest. `worker` only where the actor need not be one."""
        worker = None if event.is_by_worker else worker
        about = (source_id, run_id, job_id, attempt, actor)
        self._events.append((event.kind, *about, "", event_data(event), worker))

    def journal_jobs(self, event: Event, job_ids: Sequence[int], actor: str) -> None:
        """One event for each of these jobs, taken from their rows as they are now."""
        self.write_events()  # events stand in the order in which things happened
        noted = {"kind": event.kind, "actor": actor, "data": event_data(event)}
        about = {"ids": to_json(job_ids), "origin": self._db.origin}
        self._db.do("add_job_events", now=self.now, **about, **noted)

    def write(self) -> None:
        self.write_counts()
        self.write_runs()
        self._write_measured()
        self.write_events()

    def _write_measured(self) -> None:
        if self._measured:
            rows = [
                (run_id, to_json([(*what, amount) for what, amount in amounts.items()]))
                for run_id, amounts in self._measured.items()
            ]
            self._db.later("add_measured", now=self.now, measured=to_json(rows))
            self._measured.clear()

    def write_runs(self) -> None:
        """Bring the counters of runs up to date with what was counted so far."""
        if self._run_deltas:
            self._db.lock_runs(sorted(self._run_deltas))
            deltas = [(run_id, *counts.values()) for run_id, counts in self._run_deltas.items()]
            self._db.later("count_runs", deltas=to_json(deltas))
            self._run_deltas.clear()

    def write_events(self) -> None:
        if self._events:
            about = {"now": self.now, "origin": self._db.origin}
            self._db.later("add_events", events=to_json(self._events), **about)
            self._events.clear()

    def write_counts(self) -> None:
        """Bring the stage counters up to date with the rows moved so far."""
        if self._stage_deltas:
            runs = {run_id for run_id, _ in self._stage_deltas} | set(self._run_deltas)
            self._db.lock_runs(sorted(runs))
            deltas = [(*where, *delta) for where, delta in self._stage_deltas.items()]
            self._db.later("count_stages", deltas=to_json(deltas))
            self._touched.update(self._stage_deltas)
            self._stage_deltas.clear()

    def runs_with_a_closed_stage(self) -> list[int]:
        """Runs in which some stage that was touched has no open job left."""
        if not self._touched:
            return []
        touched = to_json(sorted(self._touched))
        self._touched.clear()
        found: list[int] = self._db.json("runs_with_a_closed_stage", touched=touched)
        return sorted(found)

    def _delta(self, run_id: int, stage: str) -> list[int]:
        where = (run_id, stage)
        delta = self._stage_deltas.get(where)
        if delta is None:
            delta = self._stage_deltas[where] = [0] * len(_STATES)
        return delta
