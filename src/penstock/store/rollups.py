"""Rollups: sums by source, hour and day, and the position in the journal up to which they are made.

Summing is not part of the turn: whoever leads does it in small transactions. Lines are read without a lock.
The sums and the new position are written in one transaction, and only if the position is still the one that
was read. A process that is killed has summed a batch whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from penstock.metrics.fold import KINDS, Fold, places
from penstock.metrics.line import Amount, Line, Measured
from penstock.metrics.measures import (
    ALL_SOURCES,
    DAY_S,
    EVER,
    HOUR_S,
    MEASURES,
    STEPS,
    STORED,
)
from penstock.store.database import Database, to_json
from penstock.store.journal_position import Position, holes_after, read_position
from penstock.store.noun import Noun

# Lines of the journal that are read at once, and how many reads make one transaction that has few sums.
LINES = 2000
READS = 10
MOST_SUMS = 5000
# Hours are kept for five weeks, days for two years.
KEEP_S = {HOUR_S: 35 * 86_400.0, DAY_S: 731 * 86_400.0}
# An attempt that started longer ago than this and is not running any more has lost its end.
LOST_S = 86_400.0
# No run has this id.
NO_RUN = 0
# How many sources are looked at for old hours and days at once.
SOURCES = 200


class _Page(msgspec.Struct):
    """Lines of the journal, and what was to be seen of it. Numbers of transactions are the database's own."""

    count: int
    last_id: int | None
    lines: list[Line]
    # Ranges of ids that have no line yet, and ids that were in such ranges and have one now.
    gaps: list[tuple[int, int]]
    late: list[int]
    # Of the transactions that are under way, the first; and the one that comes next.
    oldest_tx: int
    next_tx: int


class Rollups(Noun):
    """The verbs of rollups."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        # The sources that had a backlog when it was last noted; None before that.
        self._had_backlog: set[int] | None = None

    def fold(self) -> int:
        """Sum a batch of what was written since the last time; answers how many rows, 0 when all is done."""
        return self._fold_journal() + self._fold_measured()

    def _fold_journal(self) -> int:
        began = read_position(self._db)
        position, fold, folded = began, Fold(began.memory), 0
        for _ in range(READS):
            page = self._read(position)
            fold.add_lines(page.lines)
            folded += page.count
            position = _behind(position, page, self._db.now())
            if page.count < LINES or fold.size >= MOST_SUMS:
                break
        if position.is_at(began):
            return 0
        with self._db.writing() as now:
            if self._move(began, position, now):
                self._write(fold)
        return folded

    def _read(self, position: Position) -> _Page:
        place = {"line": position.line, "limit": LINES, "holes": to_json(position.holes)}
        return self._db.decoded("lines_to_fold", _Page, kinds=to_json(KINDS), **place)

    def _fold_measured(self) -> int:
        began = read_position(self._db)
        measured = self._db.decoded("measured_to_fold", list[Measured], limit=LINES)
        if not measured:
            return 0
        fold = Fold()
        fold.add_measured(measured)
        with self._db.writing() as now:
            if self._move(began, began, now):
                self._db.do("drop_measured", ids=to_json([each.id for each in measured]))
                self._write(fold)
        return len(measured)

    def _move(self, began: Position, position: Position, now: float) -> bool:
        """Move the position; False if somebody else has moved it since it was read."""
        place = {"line": position.line, "holes": to_json(position.holes)}
        place["memory"] = to_json(position.memory)
        return self._db.do("move_position_if", version=began.version, now=now, **place) > 0

    def _write(self, fold: Fold) -> None:
        sums = sorted((*place, amount) for place, amount in fold.sums().items())
        runs = sorted((*place, amount) for place, amount in fold.runs.items())
        opened = [(*attempt, at) for attempt, at in fold.opened.items()]
        released = [(*attempt, at) for attempt, at in fold.recovery.released.items()]
        for query, rows in (("add_rollups", sums), ("add_run_rollups", runs)):
            if rows:
                self._db.do(query, sums=to_json(rows))
        for query, attempts in (
            ("open_attempts", opened),
            ("close_attempts", sorted(fold.closed)),
            ("add_releases", released),
            ("drop_releases", sorted(fold.recovery.recovered)),
        ):
            if attempts:
                self._db.do(query, attempts=to_json(attempts))

    def measure(self, amounts: Sequence[Amount]) -> None:
        """What is measured of no run, such as the time of turns: an appended row, until it is summed."""
        rows = [(NO_RUN, to_json(amounts))]
        with self._db.writing() as now:
            self._db.do("add_measured", now=now, measured=to_json(rows))

    def note_backlogs(self) -> None:
        """Note how many jobs of each source are open now: the last such number of an hour or day stays."""
        now_open: dict[int, int] = dict(self._db.json("open_jobs_by_source"))
        if self._had_backlog is None:
            self._had_backlog = set(self._db.json("present_backlogs")) - {ALL_SOURCES}
        if not now_open and not self._had_backlog:
            return
        gone = dict.fromkeys(self._had_backlog - now_open.keys(), 0)
        found = {**gone, **now_open, ALL_SOURCES: sum(now_open.values())}
        with self._db.writing() as now:
            values = [
                (*place, jobs)
                for source_id, jobs in sorted(found.items())
                for place in places(source_id, "backlog", now, "")
            ]
            self._db.do("set_rollups", values=to_json(values))
        self._had_backlog = set(now_open)

    def prune(self, after_id: int = ALL_SOURCES - 1) -> int | None:
        """Drop the hours and days of some sources that are too old; where to go on, None when all is done."""
        ids: list[int] = self._db.json("source_ids_after", after_id=max(0, after_id), limit=SOURCES)
        looked_at = ids if after_id >= ALL_SOURCES else [ALL_SOURCES, *ids]
        with self._db.writing() as now:
            which = {"source_ids": to_json(looked_at), "measures": to_json(STORED)}
            for step, keep_s in KEEP_S.items():
                self._db.do("drop_old_rollups", step=step, before=now - keep_s, **which)
            for query in ("drop_lost_attempts", "drop_lost_releases"):
                self._db.do(query, before=now - LOST_S, limit=LINES)
        return ids[-1] if len(ids) == SOURCES else None

    def folded_at(self) -> float:
        """When the position moved last; 0 before the first time."""
        return read_position(self._db).at

    def series(
        self,
        measure: str,
        source_id: int | None,
        since: float,
        until: float,
        step: str = "hour",
        label: str | None = None,
    ) -> list[tuple[float, float]]:
        """The sums of each hour or day that has any: (when it began, the sum). No source is all of them."""
        where = _where(measure, source_id, since, until, step)
        labels = _labels(measure, label)
        return self._db.decoded("rollup_series", list[tuple[float, float]], labels=labels, **where)

    def by_label(
        self, measure: str, source_id: int | None, since: float, until: float, step: str = "hour"
    ) -> dict[str, float]:
        """The sums of a stretch of time by label; those of a histogram are its buckets."""
        where = _where(measure, source_id, since, until, step)
        found = self._db.decoded("rollup_by_label", dict[str, float], **where)
        wanted = MEASURES[measure].labels if measure in MEASURES else ()
        return {label: value for label, value in found.items() if not wanted or label in wanted}

    def by_source(
        self, measure: str, since: float, until: float, step: str = "day", label: str | None = None
    ) -> dict[str, float]:
        """The sums of a stretch of time by source."""
        where = _where(measure, None, since, until, step)
        del where["source_id"]
        labels = _labels(measure, label)
        return self._db.decoded("rollup_by_source", dict[str, float], labels=labels, **where)

    def totals(self, measures: Iterable[str]) -> list[tuple[str | None, str, str, float]]:
        """All that was ever summed of these: (source, measure, label, sum); without a source, of all."""
        kind = list[tuple[str | None, str, str, float]]
        return self._db.decoded("rollup_totals", kind, measures=to_json(sorted(measures)))

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, dict[str, dict[str, float]]]:
        """The histograms of runs: by run, measure and bucket."""
        kind = list[tuple[int, str, str, float]]
        found: dict[int, dict[str, dict[str, float]]] = {}
        for run_id, measure, label, value in self._db.decoded(
            "rollups_of_runs", kind, ids=to_json(list(run_ids))
        ):
            found.setdefault(run_id, {}).setdefault(measure, {})[label] = value
        return found


def _behind(position: Position, page: _Page, now: float) -> Position:
    holes = holes_after(position.holes, page.gaps, page.late, page.oldest_tx, page.next_tx, now)
    line = max(position.line, page.last_id or 0)
    return Position(position.version, line, holes, position.at, position.memory)


def _where(
    measure: str, source_id: int | None, since: float, until: float, step: str
) -> dict[str, object]:
    known = MEASURES.get(measure)
    step_s = EVER if step == "ever" else STEPS[step]
    return {
        "source_id": ALL_SOURCES if source_id is None else source_id,
        "measure": known.stored if known else measure,
        "step": step_s,
        "since": since - since % step_s if step_s else 0.0,
        "until": until,
    }


def _labels(measure: str, label: str | None) -> str | None:
    if label is not None:
        return to_json([label])
    known = MEASURES.get(measure)
    return to_json(known.labels) if known and known.labels else None
