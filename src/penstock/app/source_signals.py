"""The signals of runbooks that are about one source: its runs, its failures, what stops it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app.run_comparison import (
    READ,
    RunFigures,
    bad_runs,
    ended_runs,
    is_undone,
    readings_of,
)
from penstock.app.views.quarantine import EntryFilter
from penstock.app.views.rejects import RejectFilter
from penstock.counting import count
from penstock.errors import UsageError
from penstock.gates.loaded import hash_of
from penstock.runbooks.runbook import UNKNOWN, Reading, Runbook

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.app.views.sources import SourceDetail

SHOWN = 3
LONGEST_EXAMPLE = 200


class SourceSignals:
    """The readings of one source at one moment; each is read when it is asked for."""

    def __init__(self, project: Nouns, runbook: Runbook, source: str) -> None:
        self._project = project
        self._runbook = runbook
        self._key = source

    def compared(self, name: str) -> Reading:
        """A figure of the newest run against those before it."""
        return self._of_newest.get(name, UNKNOWN)

    def failures(self) -> Reading:
        causes = self._project.quarantine.causes(self._key, limit=SHOWN).items
        entries = self._project.quarantine.list(EntryFilter(source=self._key), limit=SHOWN).items
        told = [f"{count(each.failures, 'job')}: {each.cause}" for each in causes]
        told += [f"job {each.id}, {each.key}: {each.error}" for each in entries]
        examples = tuple(text[:LONGEST_EXAMPLE] for text in told)
        return Reading(len(causes), "; ".join(told[: len(causes)])[:LONGEST_EXAMPLE], examples)

    def rejects(self) -> Reading:
        wanted = RejectFilter(source=self._key, open_only=True)
        number = self._project.rejects.count(wanted)
        found = self._project.rejects.list(wanted, limit=SHOWN).items if number else []
        examples = tuple(
            f"reject {each.id}, {each.key}: {each.code}, {each.reason}"[:LONGEST_EXAMPLE]
            for each in found
        )
        return Reading(number, count(number, "rejected item"), examples)

    def bad_runs(self) -> Reading:
        numbers = ", ".join(f"run {run.row.id}" for run in self._bad)
        return Reading(len(self._bad), numbers)

    def first_bad_run(self) -> Reading:
        return Reading(self._bad[-1].row.id) if self._bad else UNKNOWN

    def last_good_run(self) -> Reading:
        after = self._runs[len(self._bad) :]
        return Reading(after[0].row.id) if after else UNKNOWN

    def bad_records(self) -> Reading:
        rows = [run.row for run in self._bad if not is_undone(self._project, run.row.id)]
        number = sum(row.inserted + row.updated for row in rows)
        return Reading(number, f"{count(number, 'record')} of {count(len(rows), 'run')}")

    def moved_checkpoints(self) -> Reading:
        if not self._bad:
            return Reading(0)
        first = self._bad[-1].row.id
        moved = [each for each in self._project.checkpoints.each(self._key) if each.run_id >= first]
        return Reading(len(moved), ", ".join(each.partition for each in moved[:SHOWN]))

    def pipeline_changed(self) -> Reading:
        if not self._runs:
            return UNKNOWN
        newest = self._runs[0].row
        try:
            today = self._project.version(self._key)
        except UsageError as error:
            return Reading(None, error.message)
        is_same, edited = today == newest.pipeline_version, self._edited_files()
        if edited:
            # This process knows an older version; a run with another one had the files of today.
            return Reading(is_same, f"this process has loaded an older {', '.join(edited)}")
        return Reading(
            not is_same, f"run {newest.id} had {newest.pipeline_version}, today's is {today}"
        )

    def run_wanted(self) -> Reading:
        is_bad, is_old = bool(self._bad), self.pipeline_changed().value is True
        return Reading(is_bad or is_old or not self._runs)

    def staged_replay(self) -> Reading:
        undecided = self._project.connection.replays.undecided()
        own = [each for each in undecided if each.source == self._key and not each.is_undo]
        if not own:
            return UNKNOWN
        return Reading(own[0].run_id, f"replay {own[0].run_id} of run {own[0].of_run_id}")

    def active_run(self) -> Reading:
        """The oldest that fetches: a replay is no part of the fault."""
        rows = [
            each
            for each in self._project.connection.runs.newest(self._key, active_only=True)
            if each.kind != "replay"
        ]
        return Reading(rows[-1].id, f"run {rows[-1].id} is {rows[-1].state}") if rows else UNKNOWN

    def active_runs(self) -> Reading:
        rows = self._project.connection.runs.newest(self._key, active_only=True)
        return Reading(len(rows), ", ".join(f"run {row.id}" for row in rows[:SHOWN]))

    def quarantined(self) -> Reading:
        return Reading(
            self._detail.quarantined, f"{count(self._detail.quarantined, 'job')} of the source"
        )

    def paused(self) -> Reading:
        return Reading(self._detail.paused_at is not None, self._detail.pause_reason)

    def held(self) -> Reading:
        holds = [each for each in self._detail.held if each.source == self._key]
        return Reading(bool(holds), "; ".join(each.reason for each in holds))

    def degraded(self) -> Reading:
        return Reading(self._detail.degraded_at is not None, self._detail.degraded_reason)

    def breaker_open(self) -> Reading:
        breaker = self._detail.breaker
        if breaker is None or breaker.state == "closed":
            return Reading(False)
        return Reading(True, f"{breaker.state}: {breaker.reason}")

    def queued(self) -> Reading:
        return Reading(self._detail.queued, f"{count(self._detail.queued, 'job')} of the source")

    def _edited_files(self) -> list[str]:
        """What a process that runs for long has loaded, and that is another file by now."""
        graph = self._project.graph(self._project.source(self._key))
        return [file.name for file, known in graph.files.items() if _hash(file) != known]

    @cached_property
    def _detail(self) -> SourceDetail:
        return self._project.sources.get(self._key)

    @cached_property
    def _runs(self) -> Sequence[RunFigures]:
        return ended_runs(self._project.connection, self._key, self._quality())

    def _quality(self) -> dict[int, float | None]:
        """The mean score of each run, as far as the journal is summed."""
        if "quality_drop" not in self._runbook.signals():
            return {}
        found = self._project.figures.runs(self._key, limit=READ).items
        return {each.id: each.quality for each in found}

    @cached_property
    def _bad(self) -> Sequence[RunFigures]:
        return bad_runs(self._runs, self._runbook.bad_run)

    @cached_property
    def _of_newest(self) -> dict[str, Reading]:
        return readings_of(self._runs)


def _hash(file: Path) -> str:
    try:
        return hash_of(file.read_bytes())
    except OSError:
        return ""
