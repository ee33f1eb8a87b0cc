"""A drain: workers for one part of one prepared run, until that is done.

It is a small supervisor: the same processes, leases and isolation as those of `penstock up`, which claim
nothing beyond their scope. It stays in the hands of whoever called it, an orchestrator's task as a rule, so
it gives back what it changes in that process.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.engine.supervisor.supervisor import Supervisor
from penstock.gates.capacity import DrainScope
from penstock.project import Project

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def drain(
    project: Project,
    scope: DrainScope,
    is_over: Callable[[], bool],
    tell: Callable[[str], None],
    stopping: threading.Event,
    grace_s: float | None = None,
) -> bool:
    """Work on this part until it is over: True; or until somebody stops it: False."""
    supervisor = Supervisor(project, tell, is_over, stopping=stopping, grace_s=grace_s, scope=scope)
    with _handlers_kept():
        return asyncio.run(supervisor.run())


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """The caller's signal handlers, put back: a supervisor has its own while it works."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: it was not set from Python, and can't be set by it.
            if handler is not None:
                signal.signal(number, handler)
