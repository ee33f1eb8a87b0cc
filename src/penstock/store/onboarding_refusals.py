"""Why nothing of a source may be started: where it stands, in words, and the verb that comes next."""

from __future__ import annotations

from penstock.errors import Refused, Remedy
from penstock.gates.onboarding import SourceState
from penstock.jobs.run import RunKind
from penstock.jobs.run_policy import policy_of
from penstock.store.database import Database

# What `start_terms` answers for a source that another cell performs, or none until it has moved.
ELSEWHERE = "elsewhere"


def refuse_start(db: Database, source_id: int, onboarding: str | None, kind: RunKind) -> None:
    """Refuse a run that no gate would ever let start: of a source that is not active.

    In trial a source has probes only. A legal hold is a gate, and passes; what is queued waits behind it.
    """
    if onboarding is None:
        return
    if onboarding == ELSEWHERE:
        [key] = [key for key, each in db.json("source_ids").items() if each == source_id]
        raise in_other_cell(key)
    state = SourceState(onboarding)
    if state is SourceState.ACTIVE or (state is SourceState.TRIAL and policy_of(kind).is_probe):
        return
    [key] = [key for key, each in db.json("source_ids").items() if each == source_id]
    raise not_active(key, state)


def in_other_cell(key: str, words: str = "in another cell") -> Refused:
    """Why this cell does nothing of a source."""
    remedy = Remedy("cells.get", key)
    return Refused(f"{key} is {words}", code="other_cell", remedy=remedy)


def not_active(key: str, state: SourceState) -> Refused:
    """Why nothing of it runs, and the verb that comes next."""
    verbs = {
        SourceState.PROPOSED: "sources.approve",
        SourceState.TRIAL: "sources.trial",
        SourceState.RETIRED: "sources.propose",
    }
    words = "in trial" if state is SourceState.TRIAL else state
    code = f"source_{state}"
    return Refused(f"{key} is {words}", code=code, remedy=Remedy(verbs[state], key))
