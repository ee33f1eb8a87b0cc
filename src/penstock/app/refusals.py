"""Why a run would not go on, or would not open again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import Refused, Remedy

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.rows import RunRow
    from penstock.store.store import Store


class Stopped:
    """What people have stopped, asked for once for however many sources."""

    def __init__(self, store: Store) -> None:
        self._paused = {each.key: each for each in store.sources() if each.paused_at is not None}
        self._holds = store.holds()

    def refuse(self, source: str, run: RunRow | None) -> None:
        """Refuse to wait for the end of a run that would never come."""
        if run is not None and run.state == "paused":
            raise Refused(
                f"run {run.id} of {source} is paused",
                code="run_paused",
                remedy=Remedy("runs.resume", run.id),
            )
        if source in self._paused:
            why = self._paused[source].pause_reason
            raise Refused(
                f"{source} is paused{f': {why}' if why else ''}",
                code="source_paused",
                remedy=Remedy("sources.resume", source),
            )
        for hold in self._holds:
            if hold.scope in ("", source):
                raise Refused(
                    f"{hold.scope or 'everything'} is held by {hold.actor}"
                    f"{f': {hold.reason}' if hold.reason else ''}",
                    code="source_held",
                    remedy=Remedy("sources.unhold", hold.scope or None),
                )


def refuse_opening(project: Nouns, run_id: int) -> None:
    """Say why nothing of a run can be tried again now, if it can't."""
    run = project.require_run(run_id)
    if run.state == "cancelled":
        raise Refused(f"run {run_id} was cancelled; start a new run instead", code="run_cancelled")
    project.refuse_degraded_end(run)
