"""The plan of a replay: no discovery, no gathering, and the pages brought by a stage of its own."""

from __future__ import annotations

from penstock.jobs.replay import REPLAY_STAGE, entry_stages, replay_plan
from penstock.jobs.run import Plan, PlannedStage

SITE = Plan(
    (
        PlannedStage("discover", "run", is_required=True, priority=3),
        PlannedStage("extract", "page", ("discover",)),
        PlannedStage("notes", "candidate", ("discover",)),
        PlannedStage("detail", "page", ("extract",)),
        PlannedStage("persist", "candidate", ("extract", "discover", "detail")),
        PlannedStage("export", "run", ("persist",), is_gather=True),
        PlannedStage("publish", "candidate", ("export",)),
    )
)


def links(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {stage.name: stage.after for stage in plan.stages}


def test_pages_and_what_follows_them_are_replayed_and_nothing_else() -> None:
    assert links(replay_plan(SITE)) == {
        REPLAY_STAGE: (),
        "extract": (REPLAY_STAGE,),
        "detail": (REPLAY_STAGE, "extract"),
        "persist": ("extract", "detail"),
    }


def test_a_pipeline_without_pages_is_replayed_from_its_beginning() -> None:
    plan = Plan((PlannedStage("read", "run"), PlannedStage("persist", "candidate", ("read",))))

    assert entry_stages(plan) == ("read",)
    assert links(replay_plan(plan)) == {
        REPLAY_STAGE: (),
        "read": (REPLAY_STAGE,),
        "persist": ("read",),
    }


def test_one_page_that_fails_does_not_fail_the_replay() -> None:
    assert [stage.name for stage in replay_plan(SITE).stages if stage.is_required] == [REPLAY_STAGE]
