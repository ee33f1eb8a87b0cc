"""Performing runs inside a program: here, or in a thread where an event loop runs already."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from penstock.app.progress import RunProgress
from penstock.engine.foreground import work_until
from penstock.engine.supervisor.lock import holder_of
from penstock.errors import AlreadyRunning
from penstock.project.stale_code import stale_workers, unknown_work

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.app.views.progress import RunReport

PROGRESS_S = 0.1
HOLDER_S = 1.0

Answer = TypeVar("Answer")


class Interrupted(KeyboardInterrupt):
    """The work was stopped before the runs had ended; they go on where they were."""

    def __init__(self, reports: list[RunReport]) -> None:
        super().__init__(", ".join(f"run {each.run} is {each.state}" for each in reports))
        self.reports = reports


class Performance:
    """Some runs on the way to their end.

    On a server this is one more host beside those that work already. A SQLite file has one Penstock:
    when another is working on it, it does the work and this only watches, unless it ends first.
    """

    def __init__(
        self,
        project: Nouns,
        run_ids: Sequence[int],
        on_progress: Callable[[list[RunReport]], None] | None,
        tell: Callable[[str], None],
    ) -> None:
        self._project = project
        self._run_ids = run_ids
        self._on_progress = on_progress
        self._tell = tell
        self.stopping = threading.Event()

    def perform(self) -> list[RunReport]:
        """Work until the runs have ended, or until `stopping` is set, and report on them."""
        self._progress = progress = RunProgress(self._project, self._run_ids)
        is_whole: bool | None = None
        while is_whole is None:
            try:
                is_whole = work_until(self._project, self._have_ended, self._tell)
            except AlreadyRunning:
                self._tell_of_others()
                is_whole = asyncio.run(self._watch())
        if not is_whole or self.stopping.is_set():
            raise Interrupted(progress.look())
        return progress.look()

    def _have_ended(self) -> bool:
        if self.stopping.is_set() or not self._progress.is_due():
            return self.stopping.is_set()
        reports = self._progress.look()
        if self._on_progress is not None:
            self._on_progress(reports)
        has_ended = self._progress.have_ended and not self._has_followers()
        return has_ended or self.stopping.is_set()

    def _has_followers(self) -> bool:
        """What a canary has of these runs is performed once they have ended, and waited for, too."""
        store = self._project.connection
        return any(store.followers.are_open(run_id) for run_id in self._run_ids)

    def _tell_of_others(self) -> None:
        self._tell(
            "another Penstock process is working on this project; this command shows its progress"
        )
        for stale in stale_workers(self._project):
            self._tell(stale.words)
        for unknown in unknown_work(self._project.connection):
            self._tell(unknown.words)

    async def _watch(self) -> bool | None:
        """Until the runs have ended: True; interrupted: False; nobody works on them any more: None."""
        clock = self._project.clock
        look_at = clock.monotonic() + HOLDER_S
        try:
            while not self._have_ended():
                await asyncio.sleep(PROGRESS_S)
                if clock.monotonic() >= look_at:
                    look_at = clock.monotonic() + HOLDER_S
                    if holder_of(self._project.settings) is None:
                        return None
        except (KeyboardInterrupt, asyncio.CancelledError):
            return False
        return True


def performed(
    project: Nouns,
    run_ids: Sequence[int],
    on_progress: Callable[[list[RunReport]], None] | None,
    tell: Callable[[str], None],
) -> list[RunReport]:
    """Work until these runs have ended, and report on them."""
    performance = Performance(project, run_ids, on_progress, tell)
    return in_own_loop(performance.perform, performance.stopping)


def watched(project: Nouns, run_ids: Sequence[int], every_s: float) -> Iterator[list[RunReport]]:
    """Reports until the runs have ended; whoever works on them does so elsewhere."""
    progress = RunProgress(project, run_ids)
    yield progress.look()
    while not progress.have_ended:
        time.sleep(every_s)
        yield progress.look()


def in_own_loop(act: Callable[[], Answer], stopping: threading.Event | None = None) -> Answer:
    """Do this here; or, where an event loop runs already, in a thread that may have one of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return act()
    return _in_thread(act, stopping or threading.Event())


def _in_thread(act: Callable[[], Answer], stopping: threading.Event) -> Answer:
    answers: list[Answer] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            answers.append(act())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name="penstock").start()
    while not done.is_set():
        try:
            # Not `thread.join`: an interrupt in it makes Python 3.11 take the thread for ended.
            done.wait()
        except KeyboardInterrupt:
            stopping.set()  # the workers drain, and the thread ends
    if errors:
        raise errors[0]
    return answers[0]
