"""Working in the foreground: until it is enough, until nothing is left, or until stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

from penstock.engine.leader.activity import Activity
from penstock.engine.supervisor.cell_watch import CellChanged
from penstock.engine.supervisor.code_reload import CodeChanged
from penstock.engine.supervisor.supervisor import Supervisor
from penstock.gates.loaded import Loaded
from penstock.project import Project
from penstock.settings import Settings
from penstock.settings.opening_hours import window_opens_at
from penstock.store.store import Store

# `up --until-idle` waits for retries that are due this soon; later ones are left for the next time.
PATIENCE_S = 60.0
# Beyond a debounce: two looks of whoever leads, and the beginning of that.
SETTLING_S = 4.0


def work_until(
    project: Project, has_ended: Callable[[], bool], tell: Callable[[str], None]
) -> bool:
    """Work until this says that it is enough: True; or until somebody stops it: False."""
    supervisor = Supervisor(project, tell, has_ended, workers=workers_of(project.settings))
    return asyncio.run(supervisor.run())


def run_forever(
    project: Project,
    *,
    tell: Callable[[str], None],
    until_idle: bool = False,
    workers: int | None = None,
    has_scheduler: bool = True,
    reloads: bool = False,
    activity: Activity | None = None,
    stopping: threading.Event | None = None,
) -> bool:
    """Work until stopped, or with `until_idle` until nothing is left to do now.

    Answers True if it ended by itself. `reloads`: it ends with CodeChanged when there is new code to load;
    where other sources came into this cell, or left it, with CellChanged.
    """
    idleness = Idleness(project) if until_idle else None
    supervisor = Supervisor(
        project,
        tell,
        (lambda: False) if idleness is None else idleness.has_come,
        has_scheduler,
        workers_of(project.settings) if workers is None else workers,
        reloads,
        activity=activity,
        stopping=stopping,
        follows_cell=True,
    )
    is_whole = asyncio.run(supervisor.run())
    if is_whole and supervisor.has_other_sources and not supervisor.wants_reload:
        raise CellChanged
    if is_whole and supervisor.wants_reload:
        raise CodeChanged
    return is_whole


class Idleness:
    """Whether nothing is left to do now. Files that lie there have time to start their runs first."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._loaded: Loaded | None = None
        self._ask_at = project.clock.monotonic() + settling(project.settings)

    def has_come(self) -> bool:
        project = self._project
        if project.clock.monotonic() < self._ask_at:
            return False
        self._loaded = self._loaded or project.loaded()
        return nothing_left(project.connection, outside_hours(project, PATIENCE_S), self._loaded)


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
    # A job that is claimed between two looks would be neither among the running nor among the queued.
    with store.at_one_moment():
        seen = store.overview()
        if seen.running > store.jobs.running_streams():
            return False
        startable = store.jobs.startable_stages(PATIENCE_S, outside)
        if any(loaded is None or loaded.knows(*where) for where in startable):
            return False
        if store.followers.by_releases(1) or store.followers.are_due():
            return False
        if store.deliveries.has_to_deliver():
            return False
        return seen.next_due_at is None or seen.next_due_at > store.now() + PATIENCE_S
