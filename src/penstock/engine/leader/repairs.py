"""Repairs: what a source missed while its breaker was open is fetched when it has closed.

Done by the host that leads. Whatever waited in the source's queue goes on by itself; this is for sources
that can be asked for a stretch of time. A repair is a run that is started under the signal's own name, so
looking at a signal twice starts it once. Where the source is degraded it is a draft, until it has recovered.
"""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.project import Project
from penstock.project.backfills import PENSTOCK, start_linked_backfill
from penstock.store.signals import SignalRow
from penstock.store.store import Store

BREAKER_CLOSED = "breaker.closed"


class Repairs:
    """Is handed every signal before it is closed, at least once."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store

    def look(self) -> list[int]:
        """Start what waited for its source to recover; answers with the runs."""
        return self._store.runs.start_recovered(PENSTOCK)

    def receive(self, signal: SignalRow) -> int | None:
        """Start what is to be repaired after this signal, if anything is; answers with the run."""
        return self._repair(signal) if signal.name == BREAKER_CLOSED else None

    def _repair(self, signal: SignalRow) -> int | None:
        source = self._project.settings.sources.get(signal.source or "")
        if source is None or source.backfill is None:
            return None
        try:
            graph = self._project.graph(source)
            return start_linked_backfill(
                self._store,
                signal.source_id,
                source,
                graph,
                start_at=float(signal.data["start_at"]),
                end_at=float(signal.data["end_at"]),
                linked_to=signal.run_id or None,
                reason="what was missed while its breaker was open",
                key=f"repair:{signal.id}",
            )
        except (PenstockError, KeyError, TypeError, ValueError):
            # A pipeline that can't be loaded now, or a signal of somebody's own under this name.
            return None
