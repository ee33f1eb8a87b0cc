"""Promises about a source: how old its last good run may be, how long a run may take, and how long ago
what is known of its shape may have been verified.

A promise that is broken is a row, once for each time it is, with its line in the journal and a signal in
the same transaction; so is the end of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.jobs.job import Owned
from penstock.jobs.run import RunState
from penstock.jobs.run_policy import policy_of
from penstock.journal import source_events as events
from penstock.store.database import Database, to_json
from penstock.store.health import RunEnd
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun

Rule = Literal["freshness", "deadline", "schema_freshness"]
Breach = tuple[int, Rule, float, int | None, str]
LEADER = "scheduler"
# A schema that is stale has an event of its own, because it asks for a run that others do not.
_BROKEN: dict[str, type[events.Breach]] = {"schema_freshness": events.SchemaStale}
_KEPT_AGAIN: dict[str, type[events.Breach]] = {"schema_freshness": events.SchemaRestored}
# Runs of other kinds take as long as they take.
_FRESH_STATES = (RunState.COMPLETED, RunState.PARTIAL)


@dataclass(frozen=True, slots=True)
class Promise:
    """What the configuration promises of one source."""

    source_id: int
    source: str
    freshness_s: float | None = None
    deadline_s: float | None = None
    schema_freshness_s: float | None = None


class BreachRow(msgspec.Struct, frozen=True):
    source: str
    rule: Rule
    since: float
    run_id: int | None
    detail: str
    ended_at: float | None


class Verification(msgspec.Struct, frozen=True):
    promised_at: float | None = None
    verified_at: float | None = None
    run_id: int | None = None


class Promises(Noun):
    """The verbs of promises."""

    def watch(self, promises: Sequence[Promise]) -> int:
        """Note which of these are broken now and which no longer are; answers how many that were.

        A run that ended well or in part is a good one, if it was full or incremental; a stream is good for as
        long as it is alive. Before the first there is what the source has existed for. A run takes as long as
        it has been asked for, and is held to the deadline that it was started with. A schema that was never
        verified is as old as the promise.
        """
        now = self._db.now()
        wanted = {each.source_id: each for each in promises}
        broken = [
            *self._stale(wanted, now),
            *self._slow(wanted, now),
            *self._unverified(wanted, now),
        ]
        stand = {(source_id, rule, since) for source_id, rule, since, _, _ in broken}
        known = [tuple(row[:3]) for row in self._db.json("open_breaches")]
        new = [each for each in broken if each[:3] not in known]
        over = [where for where in known if where not in stand]
        if not new and not over:
            return 0
        return self._write(sorted(new, key=_place), sorted(over), wanted)

    def _stale(self, wanted: dict[int, Promise], now: float) -> list[Breach]:
        ids = sorted(each.source_id for each in wanted.values() if each.freshness_s)
        found: list[Breach] = []
        for source_id, created_at, good_at in self._ask("freshness", ids):
            allowed_s = wanted[int(source_id)].freshness_s or 0.0
            since = _broken_at(good_at or created_at, allowed_s)
            if since < now:
                found.append(
                    (int(source_id), "freshness", since, None, _freshness_words(allowed_s))
                )
        return found

    def _slow(self, wanted: dict[int, Promise], now: float) -> list[Breach]:
        ids = sorted(each.source_id for each in wanted.values() if each.deadline_s)
        found: list[Breach] = []
        for source_id, run_id, queued_at, deadline_s in self._ask("runs_under_way", ids):
            allowed_s = deadline_s or wanted[int(source_id)].deadline_s or 0.0
            since = _broken_at(queued_at, allowed_s)
            if since < now:
                detail = f"run {run_id} takes longer than {_span(allowed_s)}"
                found.append((int(source_id), "deadline", since, int(run_id), detail))
        return found

    def _unverified(self, wanted: dict[int, Promise], now: float) -> list[Breach]:
        ids = sorted(each.source_id for each in wanted.values() if each.schema_freshness_s)
        known = {int(row[0]): row[1:] for row in self._ask("verifications", ids)}
        new = [each for each in ids if each not in known or known[each][0] is None]
        if new:
            with self._db.writing() as promised_at:
                self._db.do("promise_schemas", ids=to_json(new), now=promised_at)
        found: list[Breach] = []
        for source_id, (promised_at, verified_at, _) in known.items():
            allowed_s = wanted[source_id].schema_freshness_s or 0.0
            since = _broken_at(verified_at or promised_at or now, allowed_s)
            if since < now:
                found.append((source_id, "schema_freshness", since, None, _schema_words(allowed_s)))
        return found

    def _ask(self, query: str, ids: Sequence[int]) -> list[list[Any]]:
        found: list[list[Any]] = self._db.json(query, ids=to_json(ids)) if ids else []
        return found

    def _write(
        self,
        new: Sequence[Breach],
        over: Sequence[tuple[object, ...]],
        wanted: dict[int, Promise],
    ) -> int:
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            began = self._db.rows("add_breaches", breaches=to_json(new)) if new else []
            ended = (
                self._db.rows("end_breaches_if_open", breaches=to_json(over), now=now)
                if over
                else []
            )
            keys = {each.source_id: each.source for each in wanted.values()}
            told = _tell(self._db, ledger, began, ended, keys, LEADER)
            ledger.write()
            return told

    def verification(self, source_id: int) -> Verification:
        """When what is known of this source's shape was verified, and since when that is promised."""
        found = self._ask("verifications", [source_id])
        return Verification(*found[0][1:]) if found else Verification()

    def breaches(
        self, source_id: int | None = None, *, open_only: bool = False, limit: int = 100
    ) -> list[BreachRow]:
        """Promises that were broken, the last first."""
        return self._db.decoded(
            "breaches", list[BreachRow], source_id=source_id, open_only=open_only, limit=limit
        )


def note_broken(db: Database, ledger: Ledger, ends: Sequence[RunEnd]) -> None:
    """Tell of promises that these ends come too late for, also where nobody has looked meanwhile; each once.

    A run is held to what was promised when it was started.
    """
    # In one statement and in order: two who write breaches at once would wait for each other else.
    broken = sorted({*_late(db, ledger, ends), *_ended_stale(db, ledger, ends)}, key=_place)
    _begin_and_end(db, ledger, broken)


def _late(db: Database, ledger: Ledger, ends: Sequence[RunEnd]) -> list[Breach]:
    bound = {e.run_id: e for e in ends if e.options.deadline_s and policy_of(e.kind).has_deadline}
    found: list[Breach] = []
    for run_id, queued_at in _of_runs(db, "queued_at_of", bound):
        end, allowed_s = bound[run_id], bound[run_id].options.deadline_s or 0.0
        since = _broken_at(queued_at, allowed_s)
        if since < ledger.now:
            detail = f"run {run_id} took longer than {_span(allowed_s)}"
            found.append((end.source_id, "deadline", since, run_id, detail))
    return found


def _ended_stale(db: Database, ledger: Ledger, ends: Sequence[RunEnd]) -> list[Breach]:
    good = {
        e.run_id: e
        for e in ends
        if e.options.freshness_s and policy_of(e.kind).keeps_fresh and e.state in _FRESH_STATES
    }
    found: list[Breach] = []
    for run_id, good_at in _of_runs(db, "good_before_runs", good):
        end, allowed_s = good[run_id], good[run_id].options.freshness_s or 0.0
        since = _broken_at(good_at, allowed_s)
        if since < ledger.now:
            found.append((end.source_id, "freshness", since, None, _freshness_words(allowed_s)))
    return found


def _of_runs(db: Database, query: str, runs: Mapping[int, RunEnd]) -> list[list[Any]]:
    found: list[list[Any]] = db.json(query, ids=to_json(sorted(runs))) if runs else []
    return found


def note_verified(db: Database, ledger: Ledger, actor: str, jobs: Sequence[Owned]) -> None:
    """These jobs have found what is known of their sources' shape to be true; a run is told of once.

    If that comes too late for what was promised when their runs were started, that is told of, too.
    """
    last = {job.source_id: job for job in jobs}
    verified = [(source_id, last[source_id].run_id) for source_id in sorted(last)]
    known = {row[0]: row[1:] for row in db.json("verified_before", verified=to_json(verified))}
    db.do("verify_schemas", verified=to_json(verified), now=ledger.now)
    broken: list[Breach] = []
    for source_id, run_id in verified:
        verified_at, by_run_id, allowed_s = known.get(source_id, (None, None, None))
        if by_run_id != run_id:
            job = last[source_id]
            event = events.SchemaVerified()
            ledger.journal(event, source_id, run_id, job.id, job.attempt, actor)
        if verified_at is not None and allowed_s:
            since = _broken_at(verified_at, allowed_s)
            if since < ledger.now:
                broken.append(
                    (source_id, "schema_freshness", since, None, _schema_words(allowed_s))
                )
    _begin_and_end(db, ledger, broken)


def _begin_and_end(db: Database, ledger: Ledger, broken: Sequence[Breach]) -> None:
    """Breaches that are over with this transaction: told of from their beginning if nobody had noticed."""
    if not broken:
        return
    breaches = to_json(broken)
    began = db.rows("add_breaches", breaches=breaches)
    ended = db.rows("end_breaches_if_open", breaches=breaches, now=ledger.now)
    ids = {source_id: key for key, source_id in db.json("source_ids").items()}
    _tell(db, ledger, began, ended, ids, "penstock")


def _tell(
    db: Database,
    ledger: Ledger,
    began: Sequence[tuple[Any, ...]],
    ended: Sequence[tuple[Any, ...]],
    keys: Mapping[int, str],
    actor: str,
) -> int:
    signals = []
    for names, usual, rows in (
        (_BROKEN, events.SlaBreached, began),
        (_KEPT_AGAIN, events.SlaRestored, ended),
    ):
        for source_id, rule, since, run_id, detail in sorted(rows):
            event = names.get(rule, usual)(rule, detail, since)
            ledger.journal(event, source_id, run_id, actor=actor)
            about = {"source": keys.get(source_id), "rule": rule, "since": since, "run": run_id}
            data = to_json({**about, "detail": detail})
            signals.append((event.kind, data, source_id, run_id or 0))
    if signals:
        db.do("add_signals", now=ledger.now, signals=to_json(signals))
    return len(signals)


def _place(breach: Breach) -> tuple[int, Rule, float]:
    return breach[:3]


def _freshness_words(allowed_s: float) -> str:
    return f"no good run for longer than {_span(allowed_s)}"


def _schema_words(allowed_s: float) -> str:
    return f"its schema was not verified for longer than {_span(allowed_s)}"


def _broken_at(from_at: float, allowed_s: float) -> float:
    return round(from_at + allowed_s, 3)


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
