"""Why a run would not go on, or would not open again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import Refused, Remedy
from penstock.gates.decide import GATES
from penstock.gates.onboarding import SHUT, Gap
from penstock.outlook.seen_gates import MENDED_BY
from penstock.store.onboarding_refusals import not_active

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.onboardings import OnboardingRow
    from penstock.store.rows import RunRow


class Stopped:
    """What people have stopped, asked for once for however many sources."""

    def __init__(self, project: Nouns) -> None:
        store = project.connection
        self._project = project
        self._onboarded = {each.source: each for each in store.onboardings.all()}
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
        refuse_fetch(self._project, source, self._onboarded.get(source))
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


def refuse_fetch(project: Nouns, source: str, known: OnboardingRow | None) -> None:
    """Refuse to fetch anything of a source that no gate would let a worker fetch."""
    from penstock.app.source_report import asked_gaps

    state = project.source_state(source, known)
    if state in SHUT:
        raise not_active(source, state)
    refuse_legal_hold(source, known)
    refuse_gaps(source, asked_gaps(project, known))


def refuse_legal_hold(source: str, known: OnboardingRow | None) -> None:
    if known is not None and known.legal_hold_at is not None:
        remedy = Remedy("sources.legal_release", source)
        why = f"{source} is on legal hold: {known.legal_hold_reason}"
        raise Refused(why, code="legal_hold", remedy=remedy)


def refuse_gaps(source: str, found: Sequence[Gap]) -> None:
    """Nothing of a source may be fetched before all of this is known; no force leads around it."""
    if found:
        remedy = Remedy(MENDED_BY[found[0].mended_by], source)
        words = ", ".join(each.words for each in found)
        raise Refused(f"{source}: {words}", code="compliance", remedy=remedy)


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
