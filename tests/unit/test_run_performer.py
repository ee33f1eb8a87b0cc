"""Performing runs where an event loop runs already, as in a notebook."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

import pytest

from penstock.app.run_performer import in_own_loop
from tests.journeys.rig import until


def in_a_notebook(act: Callable[[], str], stopping: threading.Event) -> str:
    """What a cell answers: it runs on a loop, and Ctrl-C raises in it as it does there."""

    async def cell() -> str:
        return in_own_loop(act, stopping)

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(cell())
    finally:
        loop.close()


def is_waiting() -> bool:
    frame: FrameType | None = sys._current_frames()[threading.main_thread().ident or 0]
    names = []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    inside = names[: names.index("_in_thread")] if "_in_thread" in names else []
    return bool(inside) and "start" not in inside


def test_interrupt_in_a_notebook_waits_until_the_workers_have_drained() -> None:
    stopping = threading.Event()

    def drained() -> str:
        until(is_waiting, "the cell waits")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert stopping.wait(30)
        return "drained"

    assert in_a_notebook(drained, stopping) == "drained"


def test_error_in_a_notebook_is_raised_there() -> None:
    def broken() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_a_notebook(broken, threading.Event())
