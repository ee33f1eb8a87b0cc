"""The service: workers and the scheduler of a project, run by this process until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from penstock.app.noun import Noun
from penstock.counting import count
from penstock.errors import Refused, Remedy

if TYPE_CHECKING:
    from penstock.app.views.progress import ActivityView, ServiceEnd
    from penstock.engine.leader.activity import Activity


def _nothing(*_: object) -> None:
    """Where nobody wants to hear it."""


class Service(Noun):
    """Workers and the scheduler, run here.

    Each verb answers when the service has ended. In the main thread, SIGTERM and Ctrl-C stop it: running
    work finishes or is put back. From another thread, set `stopping`. `tell` is called with what the
    supervisor, workers and steps have to say, `on_begin` once, when it is clear that the work can begin.
    """

    def up(
        self,
        *,
        until_idle: bool = False,
        workers: int | None = None,
        reload: bool = False,
        on_begin: Callable[[], None] = _nothing,
        on_activity: Callable[[ActivityView], None] = _nothing,
        tell: Callable[[str], None] = _nothing,
        stopping: threading.Event | None = None,
    ) -> ServiceEnd:
        """Run workers and the scheduler until stopped; with `until_idle`, until nothing is left to do.

        `workers` is how many worker processes there are (`worker.count`); on SQLite there is one. With
        `reload` it also ends when code or penstock.yaml has changed. `on_activity` is called when a run
        starts or ends, a breaker opens, a job is quarantined and so on, by the one host that schedules.
        Refused where another process works on the same SQLite file.
        """
        asked = self._workers(workers)
        if self.holder() is None:
            on_begin()
        return self._run(
            tell,
            on_activity,
            stopping or threading.Event(),
            until_idle=until_idle,
            workers=asked,
            reloads=reload,
        )

    def work(
        self,
        *,
        workers: int | None = None,
        on_begin: Callable[[], None] = _nothing,
        tell: Callable[[str], None] = _nothing,
        stopping: threading.Event | None = None,
    ) -> ServiceEnd:
        """Run workers only, until stopped: schedules are started elsewhere. For a store that hosts share."""
        self._refuse_alone("worker")
        asked = self._workers(workers)
        on_begin()
        stopping = stopping or threading.Event()
        return self._run(tell, None, stopping, workers=asked, has_scheduler=False)

    def schedule(
        self,
        *,
        on_begin: Callable[[], None] = _nothing,
        on_activity: Callable[[ActivityView], None] = _nothing,
        tell: Callable[[str], None] = _nothing,
        stopping: threading.Event | None = None,
    ) -> ServiceEnd:
        """Run the scheduler only, until stopped: the work is done elsewhere. For a store that hosts share."""
        self._refuse_alone("scheduler")
        on_begin()
        return self._run(tell, on_activity, stopping or threading.Event(), workers=0)

    def holder(self) -> int | None:
        """The process that has this project to itself now; None if there is none, or many may have it."""
        from penstock.engine.supervisor.lock import holder_of

        return holder_of(self._project.settings)

    def _run(
        self,
        tell: Callable[[str], None],
        on_activity: Callable[[ActivityView], None] | None,
        stopping: threading.Event,
        **options: Any,
    ) -> ServiceEnd:
        from penstock.app.run_performer import in_own_loop
        from penstock.app.views.progress import ServiceEnd
        from penstock.engine.foreground import run_forever
        from penstock.engine.supervisor.cell_watch import CellChanged
        from penstock.engine.supervisor.code_reload import CodeChanged

        activity = (
            None
            if on_activity is None
            else _activity(on_activity, self._project.settings.private_sources)
        )
        options |= {"tell": tell, "activity": activity, "stopping": stopping}
        reason: Literal["idle", "stopped", "code_changed", ""] = ""
        while not reason:
            try:
                is_whole = in_own_loop(lambda: run_forever(self._project, **options), stopping)
                reason = "idle" if is_whole else "stopped"
            except CellChanged:
                self._project.know_all_sources()
            except CodeChanged:
                reason = "code_changed"
        return ServiceEnd(reason=reason, ended={} if activity is None else dict(activity.ended))

    def _workers(self, asked: int | None) -> int:
        """How many worker processes are wanted; more than one is refused where they would only wait."""
        settings = self._project.settings
        wanted = asked if asked is not None else settings.worker.count
        if wanted > 1 and not settings.is_on_postgres:
            raise Refused(
                f"{count(wanted, 'worker')} on one SQLite file would wait for each other: it has one writer",
                'use more cores with isolation="process" steps, or many workers with Postgres',
                code="one_writer",
            )
        return wanted

    def _refuse_alone(self, what: str) -> None:
        if not self._project.settings.is_on_postgres:
            raise Refused(
                f"a separate {what} needs a database that hosts share; "
                "on a SQLite file, one Penstock does all of the work",
                code="store_not_shared",
                remedy=Remedy("service.up"),
            )


def _activity(
    on_activity: Callable[[ActivityView], None], private_sources: frozenset[str]
) -> Activity:
    from penstock.app.views.progress import activity_view
    from penstock.engine.leader.activity import Activity

    return Activity(lambda line: on_activity(activity_view(line)), private_sources)
