"""Accounts: what became of every page and candidate, counted with what it became, checked when a run ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from penstock.jobs.emptiness import LOOKED_AT, UNEXPECTED, Ending, Yield, end_of_empty, fallen_from
from penstock.jobs.job import JobState, Owned
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.run import RunState, StageCount
from penstock.jobs.run_sums import Fates, RunSums, account_of, fate_of
from penstock.journal.event import Event
from penstock.journal.run_events import QualityAnomaly, QualityZeroYield, RunCountsMismatch
from penstock.store.database import LAST_ID, Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.rows import RunRow

# Among so many of a source's newest runs those of one kind are looked for.
HISTORY = 50

_Units = dict[str, dict[str, StageCount]]


def account_of_run(db: Database, row: RunRow) -> RunSums:
    """The sums of a run, from its rows."""
    return _account(row, _units(db, [row.id]).get(str(row.id), {}))


def runs_made_of(db: Database, run_id: int) -> list[RunRow]:
    """The runs that were made from this one."""
    found = (_run(db, each) for each in db.json("runs_made_of", run_id=run_id))
    return [row for row in found if row is not None]


def count_candidates(
    ledger: Ledger,
    ends: Sequence[tuple[Settlement | Flush, Owned]],
    has_changed: Mapping[int, bool],
) -> None:
    """Count what became of the candidates that succeeded; `has_changed` is what their saves did, by job."""
    counts: Counter[tuple[int, str]] = Counter()
    for end, job in ends:
        if (
            not isinstance(end, Settlement)
            or end.unit == "page"
            or end.state is not JobState.SUCCEEDED
        ):
            continue
        unit = end.unit or ledger.stages(job.run_id)[job.stage].unit
        if unit == "candidate":
            counts[job.run_id, fate_of(end.effects, has_changed.get(job.id))] += 1
    for (run_id, fate), number in counts.items():
        ledger.count(run_id, f"candidates_{fate}", number)


def end_account(
    db: Database, ledger: Ledger, run_id: int, state: RunState, reason: str
) -> tuple[RunState, str]:
    """Check the sums of a run that ends now, and judge it by what is usual: its state, and why."""
    ledger.write_runs()
    row = _run(db, run_id)
    if row is None:
        return state, reason
    units = _units(db, [run_id]).get(str(run_id), {})
    account = _account(row, units)
    if account.unaccounted:
        pages, candidates = account.pages.unaccounted, account.candidates.unaccounted
        event = RunCountsMismatch(pages, candidates)
        ledger.journal(event, row.source_id, run_id, actor="penstock")
    if reason or state is RunState.CANCELLED:
        return state, reason
    ending = _ending(db, row, units, account)
    if not ending.is_empty and not ending.is_compared:
        return state, reason
    before = _yields_before(db, row)
    if not ending.is_empty:
        usual = fallen_from(state, ending, before)
        if usual is not None:
            _tell_fall(db, ledger, row, ending.found.brought, usual, len(before))
        return state, reason
    state, reason = end_of_empty(state, ending, before)
    if reason == UNEXPECTED:
        _tell_zero_yield(db, ledger, row, before)
    return state, reason


def _ending(db: Database, row: RunRow, units: Mapping[str, StageCount], account: RunSums) -> Ending:
    turned = [count for unit, count in units.items() if unit != "candidate"]
    quarantined = sum(count.quarantined for count in turned)
    auth = db.json("failures_by_kind", run_id=row.id).get("auth", 0) if quarantined else 0
    return Ending(
        kind=row.kind,
        options=row.options,
        account=account,
        found=_yield(row, units),
        pages_unchanged=row.pages_unchanged,
        refused=row.disallowed + auth,
        turned_away=sum(count.skipped for count in turned) + quarantined,
    )


def _tell_zero_yield(db: Database, ledger: Ledger, row: RunRow, before: Sequence[Yield]) -> None:
    yielded = sum(each.records > 0 or each.pages > 0 for each in before)
    _tell(db, ledger, row, QualityZeroYield(yielded, len(before)))


def _tell_fall(
    db: Database, ledger: Ledger, row: RunRow, brought: int, usual: float, runs: int
) -> None:
    _tell(db, ledger, row, QualityAnomaly(brought, usual, runs))


def _tell(db: Database, ledger: Ledger, row: RunRow, event: Event) -> None:
    """An event, and a signal of the same name and data."""
    ledger.journal(event, row.source_id, row.id, actor="penstock")
    data = {"reason": event.sentence(), **msgspec.structs.asdict(event)}
    signal = (event.kind, to_json(data), row.source_id, row.id)
    db.do("add_signals", now=ledger.now, signals=to_json([signal]))


def _yields_before(db: Database, row: RunRow) -> list[Yield]:
    """What came of the last ended runs of the same source and kind, the newest first."""
    ids = db.value("latest_runs_of", source_id=row.source_id, limit=HISTORY, before_id=LAST_ID)
    rows = db.decoded("runs", list[RunRow], ids=ids)
    ended = (RunState.COMPLETED, RunState.PARTIAL, RunState.FAILED)
    alike = [r for r in rows if r.id != row.id and r.kind == row.kind and r.state in ended]
    recent = alike[:LOOKED_AT]
    units = _units(db, [each.id for each in recent])
    return [_yield(each, units.get(str(each.id), {})) for each in recent]


def _yield(row: RunRow, units: Mapping[str, StageCount]) -> Yield:
    saved = row.inserted + row.updated + row.unchanged
    accepted = row.candidates_accepted + row.candidates_duplicate
    pages = units.get("page", StageCount()).succeeded + row.pages_unchanged
    brought = max(saved, accepted) + row.pages_unchanged
    return Yield(records=saved + accepted, pages=pages, brought=brought)


def _account(row: RunRow, units: Mapping[str, StageCount]) -> RunSums:
    return account_of(
        units.get("page", StageCount()),
        units.get("candidate", StageCount()),
        pages_added=row.pages_added,
        fates=Fates(
            added=row.candidates_added,
            accepted=row.candidates_accepted,
            duplicate=row.candidates_duplicate,
            rejected=row.candidates_rejected,
            passed=row.candidates_passed,
            dropped=row.candidates_dropped,
        ),
        is_kept=row.is_accounted,
    )


def _run(db: Database, run_id: int) -> RunRow | None:
    found = db.decoded("runs", list[RunRow], ids=to_json([run_id]))
    return found[0] if found else None


def _units(db: Database, run_ids: Sequence[int]) -> _Units:
    """The states of these runs' jobs, by run and unit."""
    return db.decoded("unit_counts", _Units, ids=to_json(sorted(run_ids)))
