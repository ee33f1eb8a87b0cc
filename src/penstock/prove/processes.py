"""Processes that are watched, signalled and killed.

Nothing here sleeps and hopes: `until` looks at an observable (a row, a file, a process that ended) again and
again, and fails with what it was waiting for when its time is over.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.clock import SystemClock

PENSTOCK = [sys.executable, "-m", "penstock"]
LOOK_S, RAREST_LOOK_S = 0.005, 0.05
CLOCK = SystemClock()


class Overdue(AssertionError):
    """What was waited for did not come."""


def own_environment() -> dict[str, str]:
    """This process's environment, as the commands of a scratch project see it: this Penstock, no settings."""
    here = str(Path(__file__).parents[2])
    known = os.environ.get("PYTHONPATH", "")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
        "PYTHONPATH": os.pathsep.join(filter(None, [known, here])),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def until(
    condition: Callable[[], Any],
    what: str,
    *,
    within_s: float = 120.0,
    process: subprocess.Popen[str] | None = None,
) -> Any:
    """Look until the condition holds, and answer with what it found.

    Also ends, with what the condition finds then, when the process ends.
    """
    began_at = CLOCK.monotonic()
    watched = [os.pidfd_open(process.pid)] if process is not None and process.poll() is None else []
    try:
        looked_at = began_at
        while not (found := condition()):
            if process is not None and process.poll() is not None:
                return condition()
            now = CLOCK.monotonic()
            if now > began_at + within_s:
                raise Overdue(f"after {within_s:g} s still waiting until {what}")
            select.select(watched, [], [], rest_s(now - looked_at, now - began_at))
            looked_at = CLOCK.monotonic()
        return found
    finally:
        for descriptor in watched:
            os.close(descriptor)


def rest_s(took_s: float, waited_s: float) -> float:
    """How long to rest after a look: who looks all the time keeps the processor from what is waited for."""
    return min(RAREST_LOOK_S, max(LOOK_S, 10 * took_s, waited_s / 20))


def pause(seconds: float, process: subprocess.Popen[str] | None = None) -> None:
    """Let this much time pass, or less if the process ends."""
    ends_at = CLOCK.monotonic() + seconds
    until(lambda: CLOCK.monotonic() >= ends_at, "the moment comes", process=process)


def parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Signal a process that we have started; one that is gone already is fine."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
