"""A replay: the pages of runs that have ended, once more, with today's logic and without the network."""

from __future__ import annotations

from msgspec.structs import replace

from penstock.jobs.run import Plan, PlannedStage

# The first stage of a replay: it brings the pages of the replayed runs. No step can have this name.
REPLAY_STAGE = "(replay)"


def replay_plan(plan: Plan) -> Plan:
    """The part of a pipeline that is replayed, with a stage before it that brings the pages.

    Nothing is discovered: the pages are those that were there. Nor is anything gathered, for what
    there is to gather is not committed yet.
    """
    entries = entry_stages(plan)
    bringing = PlannedStage(REPLAY_STAGE, "run", is_required=True, priority=_priority(plan))
    kept: dict[str, PlannedStage] = {REPLAY_STAGE: bringing}
    for stage in plan.stages:
        after = tuple(name for name in stage.after if name in kept)
        if stage.name in entries:
            after = (REPLAY_STAGE, *after)
        if after and not stage.is_gather:
            kept[stage.name] = _with_after(stage, after)
    return Plan(tuple(kept.values()))


def entry_stages(plan: Plan) -> tuple[str, ...]:
    """The stages whose jobs are replayed: those of pages; where a pipeline has none, its first ones."""
    pages = tuple(s.name for s in plan.stages if s.unit == "page" and not s.is_gather)
    return pages or tuple(s.name for s in plan.stages if not s.after and s.name != REPLAY_STAGE)


def _priority(plan: Plan) -> int:
    return min((stage.priority for stage in plan.stages), default=0)


def _with_after(stage: PlannedStage, after: tuple[str, ...]) -> PlannedStage:
    return replace(stage, after=after, is_gather=False, is_required=False)
