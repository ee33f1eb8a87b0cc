"""Performing runs inside a program: here, or in a thread where an event loop runs already."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from penstock.engine.foreground import Interrupted, RunReport, report, run_foreground

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns

__all__ = ["Interrupted", "RunReport", "in_own_loop", "performed", "report", "run_foreground"]

Answer = TypeVar("Answer")


def performed(
    project: Nouns,
    run_ids: Sequence[int],
    on_progress: Callable[[RunReport], None] | None,
    tell: Callable[[str], None],
) -> list[RunReport]:
    """Work until these runs have ended, and report on them."""

    def show(reports: list[RunReport]) -> None:
        if on_progress is not None:
            for report in reports:
                on_progress(report)

    stopping = threading.Event()
    try:
        return in_own_loop(lambda: run_foreground(project, run_ids, show, tell, stopping), stopping)
    except Interrupted as interrupted:
        states = ", ".join(f"run {each.run} is {each.state}" for each in interrupted.reports)
        raise KeyboardInterrupt(states) from None


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
