"""A project as a program or a notebook has it: everything of `penstock.project`, and performing runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock import project
from penstock.engine.dry_run import Tried, try_page
from penstock.engine.foreground import Interrupted, RunReport, run_foreground
from penstock.errors import Refused
from penstock.project.starting import Asked

Answer = TypeVar("Answer")


class Project(project.Project):
    """One penstock.yaml and everything that belongs to it, with workers to perform its runs."""

    def perform(
        self,
        name: str,
        kind: str = "full",
        *,
        actor: str | None = None,
        reason: str = "",
        params: dict[str, Any] | None = None,
        pages: int | None = None,
        on_progress: Callable[[RunReport], None] | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> RunReport:
        """Start a run of a source, perform it with workers of its own, and answer when it has ended.

        `params` go over the source's own, `pages` is how many pages are enough. A run of this kind that has
        not ended is gone on with. Where somebody works on the project already,
        they do the work and this waits for it. It also works inside a running event loop, as notebooks have,
        and blocks it. Ctrl-C stops the workers; the next `perform`, `penstock run` or `penstock up` goes on
        with the run.
        """
        self._refuse_stopped(name)
        asked = Asked(params=params or {}, pages=pages)
        row, _ = self.start_or_join(name, kind, actor, reason, asked)
        [report] = _performed(self, [row.id], on_progress, tell)
        return report

    def try_page(
        self,
        name: str,
        target: str | int,
        *,
        step: str | None = None,
        item: Any = None,
        offline: bool = False,
    ) -> Tried:
        """Perform the steps of one page and what follows them, without writing anything."""
        return _in_own_loop(
            lambda: try_page(self, name, str(target), stage=step, item=item, is_offline=offline)
        )

    def _refuse_stopped(self, name: str) -> None:
        """What is paused or held would never end."""
        key = self.source(name).key
        for row in self.store.sources():
            if row.key == key and row.paused_at is not None:
                raise Refused(f"{key} is paused", f"project.resume({key!r})")
        for hold in self.store.holds():
            if hold.scope in ("", key):
                what = hold.scope or "the project"
                raise Refused(f"{what} is held by {hold.actor}", f"penstock unhold {hold.scope}")


def _performed(
    opened: project.Project,
    run_ids: Sequence[int],
    on_progress: Callable[[RunReport], None] | None,
    tell: Callable[[str], None],
) -> list[RunReport]:
    def show(reports: list[RunReport]) -> None:
        if on_progress is not None:
            for report in reports:
                on_progress(report)

    stopping = threading.Event()
    try:
        return _in_own_loop(lambda: run_foreground(opened, run_ids, show, tell, stopping), stopping)
    except Interrupted as interrupted:
        states = ", ".join(f"run {each.run} is {each.state}" for each in interrupted.reports)
        raise KeyboardInterrupt(states) from None


def _in_own_loop(act: Callable[[], Answer], stopping: threading.Event | None = None) -> Answer:
    """Do this here; or, where an event loop runs already, in a thread that may have one of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return act()
    return _in_thread(act, stopping or threading.Event())


def _in_thread(act: Callable[[], Answer], stopping: threading.Event) -> Answer:
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(act())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="penstock")
    thread.start()
    while thread.is_alive():
        try:
            thread.join()
        except KeyboardInterrupt:
            stopping.set()  # the workers drain, and the thread ends
    if errors:
        raise errors[0]
    return answers[0]
