"""Stages that follow their own items, or are only tried, grow no further than they may."""

from __future__ import annotations

import pytest

from penstock.jobs.run import Plan, PlannedStage, RunKind, RunOptions
from tests.contract.scenes import World, a_job, done


def following(depth: int, pages: int) -> Plan:
    crawl = PlannedStage("crawl", "page", ("discover",), most_jobs=pages, most_depth=depth)
    return Plan((PlannedStage("discover", "run", is_required=True), crawl))


def crawl(world: World, wide: int) -> int:
    """Work until nothing is left, where each page finds so many others; answers with the pages."""
    found = 0
    while jobs := world.claim(slots=10):
        ends = []
        for job in jobs:
            keys = [f"{job.key}.{number}" for number in range(wide)]
            children = [a_job(key, stage="crawl") for key in [*keys, "first"]]
            if job.stage == "discover":
                children = [a_job("first", stage="crawl")]
            ends.append(done(job, children=children))
            found += job.stage == "crawl"
        world.turn("w", *ends)
    return found


@pytest.mark.parametrize(("depth", "pages", "found"), [(3, 1000, 1 + 2 + 4 + 8), (50, 25, 25)])
def test_following_is_bounded_by_depth_and_count(
    world: World, depth: int, pages: int, found: int
) -> None:
    run_id = world.start(following(depth, pages))

    assert crawl(world, wide=2) == found

    run = world.run(run_id)
    is_cut = found == pages
    assert run.state == "completed"
    assert run.end_reason == (f"cut: crawl reached its limit of {pages} jobs" if is_cut else "")
    cuts = world.store.journal.events(run_id=run_id, kind="run.limit_reached")
    assert len(cuts) == int(is_cut)


def test_run_of_few_pages_has_no_more_of_them_whatever_is_found(world: World) -> None:
    plan = Plan((PlannedStage("discover", "run"), PlannedStage("extract", "page", ("discover",))))
    run_id, _ = world.store.runs.start(
        world.source(), RunKind.FULL, plan, "v1",
        key="few", actor="ann", reason="", options=RunOptions(pages=3, params={"of": [1, None]}),
    )  # fmt: skip
    root = world.one()
    keys = ["a", "b", "a", "c", "d"]
    world.turn("w", done(root, children=[a_job(key) for key in keys]))

    assert {job.key for job in world.jobs(run_id, stage="extract")} == {"a", "b", "c"}
    world.turn("w", *(done(job) for job in world.claim()))
    assert world.run(run_id).end_reason == "cut: extract reached its limit of 3 jobs"
    facts = world.store.runs.facts([run_id])[run_id]
    assert facts.options.params == {"of": [1, None]}
