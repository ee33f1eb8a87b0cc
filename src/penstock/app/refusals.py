"""Why a run would not go on, or would not open again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import Refused, Remedy
from penstock.gates.decide import GATES

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.rows import RunRow
    from penstock.store.store import Store


class Stopped:
    """What people have stopped, asked for once for however many sources."""

    def __init__(self, store: Store) -> None:
        self._paused = {
            each.key: each for each in store.sources.all() if each.paused_at is not None
        }
        self._holds = store.sources.holds()

    def refuse(self, source: str, run: RunRow | None) -> None:
        """Refuse to wait for the end of a run that would never come.

        The run is asked first, then the gates of its source in the order of the claim.
        """
        if run is not None and run.state == "paused":
            raise Refused(
                f"run {run.id} of {source} is paused",
                code="run_paused",
                remedy=Remedy("runs.resume", run.id),
            )
        asked = {"held": self._refuse_held, "paused": self._refuse_paused}
        for gate in GATES:
            if gate in asked:
                asked[gate](source)

    def _refuse_held(self, source: str) -> None:
        for hold in self._holds:
            if hold.scope in ("", source):
                raise Refused(
                    f"{hold.scope or 'everything'} is held by {hold.actor}"
                    f"{f': {hold.reason}' if hold.reason else ''}",
                    code="source_held",
                    remedy=Remedy("sources.unhold", hold.scope or None),
                )

    def _refuse_paused(self, source: str) -> None:
        if source in self._paused:
            why = self._paused[source].pause_reason
            raise Refused(
                f"{source} is paused{f': {why}' if why else ''}",
                code="source_paused",
                remedy=Remedy("sources.resume", source),
            )


def refuse_opening(project: Nouns, run_id: int) -> None:
    """Say why nothing of a run can be tried again now, if it can't."""
    run = project.require_run(run_id)
    if run.state == "cancelled":
        raise Refused(f"run {run_id} was cancelled; start a new run instead", code="run_cancelled")
    project.refuse_degraded_end(run)


def refuse_by_release(run: RunRow) -> None:
    """Only the files of its release may perform such a run, by workers that Penstock itself starts."""
    if run.options.by_release:
        raise Refused(
            f"run {run.id} is performed by release {run.options.by_release[:12]}",
            "the workers of the service perform it; cancel it to give it up",
            code="run_by_release",
        )
