"""How a canary parts a run when it starts: what the run itself does, and the run that follows it.

Of pages, the live run leaves a share, and a run of the release fetches these once the live run has ended.
Of sources, the release performs the live run, and the project's own files perform the same pages again from
their snapshots: the control. All of it is written in the transaction that starts the run, so who performs
what never depends on who died when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from penstock.jobs.canary.share import Arm
from penstock.jobs.replay import replay_plan
from penstock.jobs.run import Plan, RunKind, RunOptions, Share
from penstock.store.database import Database

PARTED = (RunKind.FULL, RunKind.INCREMENTAL)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run is made of."""

    kind: RunKind
    plan: Plan
    pipeline_version: str
    options: RunOptions
    for_drains: bool


@dataclass(frozen=True, slots=True)
class Parted:
    """A live run of a source that a canary has a part of, and the draft that follows it."""

    canary_id: int
    live: Asked
    live_arm: Arm
    # None where there is nothing to compare it with any more.
    follower: Asked | None = None

    def key_of(self, run_id: int) -> str:
        return f"canary:{self.canary_id}:{run_id}"

    def note(self, db: Database, live_id: int, follower_id: int | None) -> None:
        """The two are its runs."""
        other: Arm = "canary" if self.live_arm == "control" else "control"
        for run_id, arm in ((live_id, self.live_arm), (follower_id, other)):
            if run_id is not None:
                db.do("add_canary_run", canary_id=self.canary_id, run_id=run_id, arm=arm)


# The canary in effect that has a part of a source: what the query `start_terms` answers of it.
Terms = Sequence[Any]


def parted_run(terms: Terms, asked: Asked) -> Parted | None:
    """How a run that starts now is parted; None if no canary has a part of it.

    Not what somebody tries, what drains perform, or what goes on with another run.
    """
    options = asked.options
    is_plain = options.pages is None and options.continues is None and not options.by_release
    if asked.kind not in PARTED or asked.for_drains or not is_plain or options.is_staged:
        return None
    canary_id, release, share, percent, salt, state, version, plans = terms
    if canary_id is None:
        return None
    its_plan = msgspec.json.decode(plans, type=dict[str, Plan])[asked.kind]
    measured = msgspec.structs.replace(options, canary=canary_id)
    if share == "pages" and state != "full":
        part = Share(percent, salt)
        live = replace(asked, options=msgspec.structs.replace(measured, leaves=part))
        takes = RunOptions(
            by_release=release, follows=True, canary=canary_id, takes=part, params=options.params
        )
        plan = replay_plan(its_plan)
        follower = Asked(RunKind.BACKFILL, plan, version, takes, for_drains=True)
        return Parted(canary_id, live, "control", follower)
    by_it = msgspec.structs.replace(measured, by_release=release)
    live = Asked(asked.kind, its_plan, version, by_it, for_drains=True)
    if state != "active":
        return Parted(canary_id, live, "canary")
    staged = RunOptions(is_staged=True, follows=True, canary=canary_id, params=options.params)
    plan = replay_plan(asked.plan)
    follower = Asked(RunKind.REPLAY, plan, asked.pipeline_version, staged, for_drains=False)
    return Parted(canary_id, live, "canary", follower)
