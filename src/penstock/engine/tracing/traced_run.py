"""The trace that a run belongs to, by the settings of its project."""

from __future__ import annotations

from penstock.jobs.run import RunOptions
from penstock.jobs.trace_context import RunTrace, trace_of
from penstock.settings.values import Settings


def trace_of_run(
    settings: Settings, run_id: int, created_at: float, options: RunOptions
) -> RunTrace:
    """The same in every process: its ids are made of the project and the run."""
    data = None if options.signal is None else options.signal.data
    return trace_of(settings.project, run_id, created_at, data, settings.tracing.sample)
