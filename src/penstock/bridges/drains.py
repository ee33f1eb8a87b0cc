"""A task's work: prepare the run, and drain one stage of it, however the engine ends the task.

A drain runs in the task's own process: it is a supervisor, whose worker is a process of its own that dies
with it. So a task that is killed leaves nothing behind that could hold a SQLite file, and the engine's
retry goes on at once. The drain is in a thread beside the task's: the engine's signal handlers stay where
they are, and what they raise stops the drain in good order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from penstock.app.secrets import environment_secrets, redact
from penstock.app.views.drains import DrainView
from penstock.bridges.places import Place
from penstock.counting import count
from penstock.errors import PenstockError, UsageError

# What a stage counts as of which some jobs are in quarantine.
Partial: TypeAlias = Literal["ok", "warn", "failed"]
PARTIAL: tuple[Partial, ...] = ("ok", "warn", "failed")
# While a thread waits for another one, it hears of what an engine raises in it only between two waits.
ATTENTION_S = 0.2
LAST_LINES = 3
ABOVE = "its message is above"
Answer = TypeVar("Answer")

_stopping: set[threading.Event] = set()


class TaskFailed(PenstockError):
    """A task of an engine failed, said in one line without secrets.

    `is_final`: the engine need not try again, because the configuration or the code is wrong.
    """

    exit_code = 4
    code = "task_failed"

    def __init__(self, message: str, *, code: str, exit_code: int, is_final: bool) -> None:
        super().__init__(message, code=code)
        self.exit_code = exit_code
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class StageEnd:
    """How a task ended that did not fail. `warning` is empty unless partial counts as a warning."""

    view: DrainView
    warning: str
    url: str

    @property
    def counts(self) -> dict[str, int]:
        """The stage's jobs by state; those of states that none is in are left out."""
        return {name: number for name, number in self.view.counts.items() if number}

    def as_json(self) -> dict[str, Any]:
        return {**self.view.as_json(), "warning": self.warning, "url": self.url}


def check_partial(partial: str) -> None:
    if partial not in PARTIAL:
        raise UsageError(f"partial is one of {', '.join(PARTIAL)}, not {partial!r:.40}")


def prepare_run(
    place: Place,
    source: str,
    key: str,
    *,
    kind: str | None = None,
    between: tuple[str, str] | None = None,
    params: dict[str, Any] | None = None,
    pages: int | None = None,
    actor: str,
    reason: str = "",
) -> int:
    """The number of the run that has this key: a new one, or the one that an earlier try prepared."""
    with failing_in_one_line(), place.opened() as project:
        started = project.runs.prepare(
            source,
            kind,
            key=key,
            between=between,
            params=params,
            pages=pages,
            actor=actor,
            reason=reason,
        )
        assert started.run is not None  # noqa: S101 - only a dry run has none
        return started.run.id


def drain_stage(
    place: Place,
    run_id: int,
    stage: str,
    *,
    shard: tuple[int, int] = (1, 1),
    attempt: int = 1,
    partial: Partial = "warn",
    deadline_s: float | None = None,
    wait_upstream: bool = False,
    grace_s: float | None = None,
    dashboard: str = "",
    tell: Callable[[str], None] = lambda text: None,
    actor: str,
) -> StageEnd:
    """Drain a stage, or one shard of it, and answer how it ended; raise TaskFailed if that is a failure.

    `attempt` is the engine's: from the second on, quarantined jobs are queued again first. After
    `stop_drains`, running attempts have `grace_s` to finish. `tell` is called with what workers and steps
    say, from another thread, without secrets.
    """
    check_partial(partial)
    with failing_in_one_line(), place.opened() as project:
        hidden, said = project.settings.secrets, deque[str](maxlen=LAST_LINES)

        def heard(text: str) -> None:
            said.append(redact(text, hidden))
            tell(said[-1])

        def drained(stopping: threading.Event) -> DrainView:
            return project.drain(
                run_id,
                stage,
                shard=shard,
                wait_upstream=wait_upstream,
                retry_failed=attempt > 1,
                deadline_s=deadline_s,
                tell=heard,
                stopping=stopping,
                grace_s=grace_s,
                actor=actor,
            )

        with failing_in_one_line(hidden, said):
            view = in_thread(drained)
            view.raise_if_failed("failed" if partial == "failed" else "ok")
    warning = _warning(view) if view.state == "partial" and partial == "warn" else ""
    return StageEnd(view, warning, run_url(dashboard, run_id))


def in_thread(act: Callable[[threading.Event], Answer]) -> Answer:
    """Do this in a thread, with an event that tells it to stop.

    The event is set, and the thread waited for, when anything is raised here, as engines do from signal
    handlers, and by `stop_drains`.
    """
    answers: list[Answer] = []
    errors: list[BaseException] = []
    # Not `thread.join`: what a signal handler raises in it makes Python take the thread for ended.
    done = threading.Event()

    def work() -> None:
        try:
            answers.append(act(stopping))
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    with _stoppable() as stopping:
        threading.Thread(target=work, name="penstock-drain").start()
        try:
            _wait_for(done)
        except BaseException:
            stopping.set()
            _wait_for(done)
            raise
    if errors:
        raise errors[0]
    return answers[0]


def stop_drains() -> None:
    """Stop all drains of this process in good order: those that other threads wait for, too."""
    for stopping in list(_stopping):
        stopping.set()


def run_url(dashboard: str, run_id: int) -> str:
    """The page of a run in the dashboard that is served under this address; empty without one."""
    return f"{dashboard.rstrip('/')}/runs/{run_id}" if dashboard else ""


@contextmanager
def failing_in_one_line(
    secrets: frozenset[str] = frozenset(), said: Iterable[str] = ()
) -> Iterator[None]:
    """Turn Penstock's errors into TaskFailed: what is wrong and what to do, without secrets.

    Where an error points to what was `said` before it, the line has that instead.
    """
    try:
        yield
    except TaskFailed:
        raise
    except PenstockError as error:
        hint = "; ".join(said) if error.hint == ABOVE else error.hint
        text = f"{error.message} ({hint})" if hint else error.message
        raise TaskFailed(
            redact(" ".join(text.split()), secrets | environment_secrets()),
            code=error.code,
            exit_code=error.exit_code,
            is_final=isinstance(error, UsageError),
        ) from None


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    stopping = threading.Event()
    _stopping.add(stopping)
    try:
        yield stopping
    finally:
        _stopping.discard(stopping)


def _wait_for(done: threading.Event) -> None:
    while not done.wait(ATTENTION_S):
        pass


def _warning(view: DrainView) -> str:
    quarantined = count(view.counts["quarantined"], "job")
    first = f": {view.errors[0].error}" if view.errors else ""
    return f"{view.step} of run {view.run} is partial; {quarantined} in quarantine{first}"
