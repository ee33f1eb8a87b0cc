"""What a command that is about to work does first.

While the command opens its project, another process loads what a worker needs. This imports nothing that
takes time.
"""

from __future__ import annotations


def expect_work() -> None:
    """Start a worker's process; if no work begins after all, it is ended with this one."""
    from penstock.engine.supervisor.early_worker import start_early

    start_early()
