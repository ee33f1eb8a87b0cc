"""A redrive: rejected items once more, at the stages that rejected them, with today's logic."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from penstock.jobs.run import Plan, PlannedStage


def redrive_plan(plan: Plan, rejecting: Collection[str]) -> Plan:
    """The stages that rejected something, and what follows them.

    Nothing is discovered, and nothing is gathered: the run has a few items of many runs, and whatever
    looks at a run as a whole would take them for all there is.
    """
    kept: dict[str, PlannedStage] = {}
    for stage in plan.stages:
        after = tuple(name for name in stage.after if name in kept)
        if not stage.is_gather and (stage.name in rejecting or after):
            kept[stage.name] = replace(stage, after=after)
    return Plan(tuple(kept.values()))
