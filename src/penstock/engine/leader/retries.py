"""Retries: what failed in the last run of a source is queued again, because a step has asked for it.

The signal `retry.wanted` names sources, how old a run may be, and how often one is retried. Signals are
handed over at least once: a retry of a run is counted before it is made, under a key.
"""

from __future__ import annotations

from typing import Any

from penstock.errors import PenstockError, StoreError
from penstock.project import Project
from penstock.project.backfills import PENSTOCK
from penstock.store.rows import RunRow
from penstock.store.signals import SignalRow
from penstock.store.store import Store

WANTED, MADE = "retry.wanted", "retry.made"
# Among so many runs the last one with failures is looked for.
RUNS = 5
MOST_TIMES = 24


class Retries:
    """Is handed every signal before it is closed, at least once."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store

    def receive(self, signal: SignalRow) -> None:
        data = signal.data if isinstance(signal.data, dict) else {}
        sources = data.get("sources")
        if signal.name != WANTED or not isinstance(sources, list):
            return
        within_s, times = data.get("within_s", 86_400.0), data.get("times", 3)
        if not isinstance(within_s, (int, float)) or not isinstance(times, int):
            return
        for source in sources:
            if source in self._project.settings.sources:
                self._retry(source, signal, within_s, min(times, MOST_TIMES))

    def _retry(self, source: str, signal: SignalRow, within_s: float, times: int) -> None:
        run = self._failed(source, within_s)
        if run is None or not self._counts(run, signal, times):
            return
        try:
            self._project.refuse_degraded_run(run)
            reason = f"hourly retry, asked for by signal {signal.id}"
            self._store.runs.retry_failed(run.id, PENSTOCK, reason)
        except StoreError:
            raise
        except PenstockError:
            return  # a degraded source recovers by probes

    def _failed(self, source: str, within_s: float) -> RunRow | None:
        """The newest run that reads the source; None if nothing of it has failed, or if it was long ago."""
        for run in self._store.runs.newest(source, limit=RUNS):
            if run.kind in ("full", "incremental") and not run.for_drains:
                ended_at = run.finished_at or 0.0
                is_due = run.is_ended and ended_at > self._store.now() - within_s
                return run if is_due and run.quarantined else None
        return None

    def _counts(self, run: RunRow, signal: SignalRow, times: int) -> bool:
        """Whether it may be retried once more; the same signal again is the same retry."""
        for number in range(1, times + 1):
            data: dict[str, Any] = {"run": run.id, "source": run.source, "number": number}
            made = {**data, "by": signal.id}
            about: dict[str, Any] = {"actor": PENSTOCK, "source_id": run.source_id}
            known, is_new = self._store.signals.raise_(
                MADE, made, key=f"retry {run.id} {number}", **about
            )
            if is_new:
                return True
            [row] = self._store.signals.after(known - 1, 1)
            if isinstance(row.data, dict) and row.data.get("by") == signal.id:
                return bool(run.quarantined)
        return False
