"""What a command that is about to work does first.

While the command opens its project, another process loads what a worker needs. This imports nothing that
takes time.
"""

from __future__ import annotations


def expect_work() -> None:
    """Start a worker's process, before anything else is loaded; if no work begins, it ends with this one."""
    from penstock.engine.supervisor.early_worker import start_early

    start_early()
