"""Repairs: what a source missed is fetched: while its breaker was open, or in a gap of its stream.

Done by the host that leads. Whatever waited in the source's queue goes on by itself; this is for sources
that can be asked for a stretch of time. A repair is a run that is started under the signal's own name, so
looking at a signal twice starts it once. Where the source is degraded it is a draft, until it has recovered.
"""

from __future__ import annotations

from typing import Any

from penstock.errors import PenstockError
from penstock.project import Project
from penstock.project.backfills import PENSTOCK, start_linked_backfill
from penstock.store.signals import SignalRow
from penstock.store.store import Store

BREAKER_CLOSED = "breaker.closed"
# Raised by a stream that knows what it missed, and of which partition; one that was away for long is seen to
# by its worker.
GAP_FOUND = "gap.found"


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
        if signal.name == BREAKER_CLOSED:
            return self._repair(signal, "what was missed while its breaker was open")
        data = signal.data if isinstance(signal.data, dict) else {}
        partition = data.get("partition")
        if signal.name != GAP_FOUND or not isinstance(partition, str):
            return None
        reason = f"a gap in the stream of {partition}"
        return self._repair(signal, reason, (partition,), {"gap": data.get("sequences")})

    def _repair(
        self,
        signal: SignalRow,
        reason: str,
        partitions: tuple[str, ...] = (),
        params: dict[str, Any] | None = None,
    ) -> int | None:
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
                reason=reason,
                key=f"repair:{signal.id}",
                partitions=partitions,
                params=params,
            )
        except (PenstockError, KeyError, TypeError, ValueError):
            # A pipeline that can't be loaded now, or a signal of somebody's own under this name.
            return None
