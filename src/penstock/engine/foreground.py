"""Working in the foreground: until some runs have ended, until nothing is left, or until stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.engine.leader.activity import Activity
from penstock.engine.supervisor.lock import holder_of
from penstock.engine.supervisor.reloading import CodeChanged
from penstock.engine.supervisor.supervisor import Supervisor
from penstock.errors import AlreadyRunning
from penstock.gates.windows import window_opens_at
from penstock.jobs.loaded import Loaded
from penstock.jobs.windows import expected_units
from penstock.project import Project
from penstock.project.stale_code import stale_workers, unknown_work
from penstock.settings import Settings
from penstock.store.rows import RunRow
from penstock.store.store import Store

PROGRESS_S = 0.1
WATCH_S = 1.0
CURSOR_S = 1.0
# Looks take about this share of the time at most; but there is one at least this often.
LOOKING_SHARE = 0.05
LONGEST_REST_S = 1.0
# `up --until-idle` waits for retries that are due this soon; later ones are left for the next time.
PATIENCE_S = 60.0
# Beyond a debounce: two looks of whoever leads, and the beginning of that.
SETTLING_S = 4.0


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run in numbers."""

    run: int
    source: str
    kind: str
    state: str
    seconds: float
    counts: dict[str, int]
    # Why it ended as it did; of a probe, its verdict.
    end_reason: str = ""
    # Of a backfill that goes on: how many units it will have when all are planned; 0 if nobody knows.
    expected: int = 0
    requests: int = 0
    # Of a run that has no pages: how far it has come, as JSON; empty if its source has no checkpoint.
    cursor: str = ""


class Interrupted(Exception):
    """The operator stopped the work before the runs had ended; they go on where they were."""

    def __init__(self, reports: list[RunReport]) -> None:
        super().__init__("interrupted")
        self.reports = reports


def report(row: RunRow, now: float, cursor: str = "") -> RunReport:
    """A run's row as the command line shows it."""
    began = row.started_at or row.created_at
    counts = {
        "pages": row.pages,
        "pages_done": row.pages_done,
        "candidates": row.candidates,
        "saved": row.inserted + row.updated + row.unchanged,
        "accepted": row.inserted + row.updated + row.unchanged,
        "inserted": row.inserted,
        "updated": row.updated,
        "unchanged": row.unchanged,
        "rejected": row.rejected,
        "dropped": row.dropped,
        "skipped": row.skipped,
        "pages_unchanged": row.pages_unchanged,
        "disallowed": row.disallowed,
        "pages_missing": row.pages_missing,
        "retried": row.retried,
        "throttled": row.throttled,
        "quarantined": row.quarantined,
        "queued": row.queued,
        "running": row.running,
        "waiting": row.waiting,
    }
    seconds = max(0.0, (row.finished_at or now) - began)
    about = (row.id, row.source, row.kind, row.state, round(seconds, 3))
    expected = 0 if row.is_ended else expected_units(row.kind, row.options)
    return RunReport(*about, counts, row.end_reason, expected, row.requests, cursor)


def run_foreground(
    project: Project,
    run_ids: Sequence[int],
    on_progress: Callable[[list[RunReport]], None] | None,
    tell: Callable[[str], None],
    stopping: threading.Event | None = None,
) -> list[RunReport]:
    """Work until these runs have ended, or until `stopping` is set, and report on them.

    On a server this is one more host beside those that work already. A SQLite file has one Penstock:
    when another is working on it, it does the work and this only watches, unless it ends first.
    """

    progress = RunProgress(project, run_ids)

    def have_ended() -> bool:
        if is_stopping() or not progress.is_due():
            return is_stopping()
        reports = progress.look()
        if on_progress is not None:
            on_progress(reports)
        return progress.have_ended or is_stopping()

    def is_stopping() -> bool:
        return stopping is not None and stopping.is_set()

    is_whole: bool | None = None
    while is_whole is None:
        try:
            supervisor = Supervisor(project, tell, have_ended, workers=workers_of(project.settings))
            is_whole = asyncio.run(supervisor.run())
        except AlreadyRunning:
            tell(
                "another Penstock process is working on this project; this command shows its progress"
            )
            for stale in stale_workers(project):
                tell(stale.words)
            for unknown in unknown_work(project.connection):
                tell(unknown.words)
            is_whole = asyncio.run(_watch(project, have_ended))
    if not is_whole or is_stopping():
        raise Interrupted(progress.look())
    return progress.look()


class RunProgress:
    """Looks at some runs: one query for all of them, and one a second for the cursors of those without pages.

    Many runs are looked at less often, so that looking takes a small share of the time.
    """

    def __init__(self, project: Project, run_ids: Sequence[int]) -> None:
        self._project = project
        self._run_ids = run_ids
        self._rows: list[RunRow] = []
        self._cursors: dict[int, str] = {}
        self._next_look_at = self._next_cursors_at = float("-inf")
        # On a server the store's time is a query of its own: it is asked once, and counted from there.
        self._clock_offset = project.connection.now() - project.clock.monotonic()

    @property
    def have_ended(self) -> bool:
        """Whether all of them had ended at the last look."""
        return all(row.is_ended for row in self._rows)

    def is_due(self) -> bool:
        return self._project.clock.monotonic() >= self._next_look_at

    def look(self) -> list[RunReport]:
        """The runs as they are now, in the order in which they were asked for."""
        began = self._project.clock.monotonic()
        self._rows = self._project.require_runs(self._run_ids)
        self._look_at_cursors(began)
        now = began + self._clock_offset
        reports = [report(row, now, self._cursors.get(row.id, "")) for row in self._rows]
        ended = self._project.clock.monotonic()
        self._next_look_at = ended + min((ended - began) / LOOKING_SHARE, LONGEST_REST_S)
        return reports

    def _look_at_cursors(self, now: float) -> None:
        without_pages = [row.id for row in self._rows if not row.pages]
        if without_pages and now >= self._next_cursors_at:
            self._cursors = self._project.connection.newest_cursors(without_pages)
            self._next_cursors_at = now + CURSOR_S


async def _watch(project: Project, have_ended: Callable[[], bool]) -> bool | None:
    """Until the runs have ended: True; interrupted: False; nobody works on them any more: None."""
    look_at = project.clock.monotonic() + WATCH_S
    try:
        while not have_ended():
            await asyncio.sleep(PROGRESS_S)
            if project.clock.monotonic() >= look_at:
                look_at = project.clock.monotonic() + WATCH_S
                if holder_of(project.settings) is None:
                    return None
    except (KeyboardInterrupt, asyncio.CancelledError):
        return False
    return True


def run_forever(
    project: Project,
    *,
    tell: Callable[[str], None],
    until_idle: bool = False,
    workers: int | None = None,
    has_scheduler: bool = True,
    reloads: bool = False,
    activity: Activity | None = None,
) -> bool:
    """Work until stopped, or with `until_idle` until nothing is left to do now.

    Answers True if it ended by itself. `reloads`: it ends with CodeChanged when there is new code to load.
    """

    loaded: Loaded | None = None

    begun_at, settling_s = project.clock.monotonic(), settling(project.settings)

    def is_idle() -> bool:
        nonlocal loaded
        if not until_idle or project.clock.monotonic() < begun_at + settling_s:
            return False
        loaded = loaded or project.loaded()
        return nothing_left(project.connection, outside_hours(project, PATIENCE_S), loaded)

    if workers is None:
        workers = workers_of(project.settings)
    supervisor = Supervisor(
        project, tell, is_idle, has_scheduler, workers, reloads, activity=activity
    )
    is_whole = asyncio.run(supervisor.run())
    if is_whole and supervisor.wants_reload:
        raise CodeChanged
    return is_whole


def workers_of(settings: Settings) -> int:
    """How many worker processes this host is to have."""
    return settings.worker.count if settings.is_on_postgres else 1


def outside_hours(project: Project, within_s: float) -> list[int]:
    """Sources of whose windows none opens this soon."""
    now, found = project.connection.now(), []
    for source_id, limits in project.limits().items():
        opens_at = window_opens_at(limits.windows, now) if limits.windows is not None else None
        if opens_at is not None and opens_at > now + within_s:
            found.append(source_id)
    return found


def settling(settings: Settings) -> float:
    """How long it takes until files that lie in watched folders have started their runs."""
    watched = [s.watch for source in settings.sources.values() for s in source.schedules if s.watch]
    return max((watch.debounce_s + SETTLING_S for watch in watched), default=0.0)


def nothing_left(store: Store, outside: Sequence[int] = (), loaded: Loaded | None = None) -> bool:
    """Nothing queued that may start, nothing running that will end, nothing due soon.

    What is not `loaded` waits for a worker that knows it, and nobody waits for that.
    """
    seen = store.overview()
    if seen.running > store.running_streams():
        return False
    startable = store.startable_stages(PATIENCE_S, outside)
    if any(loaded is None or loaded.knows(*where) for where in startable):
        return False
    if store.has_to_deliver():
        return False
    return seen.next_due_at is None or seen.next_due_at > store.now() + PATIENCE_S
