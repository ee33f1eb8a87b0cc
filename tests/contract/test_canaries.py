"""Canaries in the store: who performs what is decided where a run starts, and each step is taken once."""

from __future__ import annotations

import msgspec
import pytest

from penstock.errors import Refused
from penstock.jobs.canary.guardrails import Limits, Look
from penstock.jobs.replay import REPLAY_STAGE
from penstock.jobs.run import RunKind, RunOptions, RunState
from penstock.store.canaries import CanaryRow, CanaryShare, CanarySource
from penstock.store.rows import RunRow
from tests.contract.scenes import SITE, World, a_job, done, pages, quarantined

R = "f" * 64


def begin(world: World, share: CanaryShare, *sources: str) -> CanaryRow:
    plans = msgspec.json.encode({"full": SITE, "incremental": SITE}).decode()
    rows = [CanarySource(world.source(each), True, "v2", plans) for each in sources]
    about = (R, share, 25.0, "salt", Limits(), rows, "test", "to try")
    found = world.store.canaries.get(world.store.canaries.begin(*about))
    assert found is not None
    return found


def run_of(world: World, run_id: int) -> RunRow:
    row = world.store.runs.get(run_id)
    assert row is not None
    return row


def start(world: World, key: str, options: RunOptions | None = None) -> RunRow:
    source_id = world.source("acme.com")
    run_id, _ = world.store.runs.start(
        source_id, RunKind.FULL, SITE, "v1", key=key, actor="test", options=options or RunOptions()
    )
    return run_of(world, run_id)


def test_run_under_a_canary_of_pages_leaves_them_to_a_draft_that_follows_it(world: World) -> None:
    canary = begin(world, "pages", "acme.com")
    live = start(world, "one")
    [mine, its] = world.store.canaries.runs(canary.id)
    follower = run_of(world, its.id)

    assert (mine.id, mine.arm, its.arm, its.of_run_id) == (live.id, "control", "canary", live.id)
    assert live.options.leaves == follower.options.takes
    assert (live.options.by_release, follower.options.by_release) == ("", R)
    assert (live.for_drains, follower.for_drains, follower.state) == (False, True, "draft")
    assert follower.pipeline_version == "v2"
    assert world.store.runs.plan(its.id).stages[0].name == REPLAY_STAGE
    assert world.store.followers.start("test") == []

    [root] = world.claim()
    world.turn("w", done(root))
    assert world.store.followers.start("test") == [its.id]
    assert world.store.followers.by_releases() == [(its.id, R)]
    assert world.claim() == []


def test_run_under_a_canary_of_sources_is_the_releases_and_the_control_follows(
    world: World,
) -> None:
    canary = begin(world, "sources", "acme.com")
    live = start(world, "one")
    [mine, control] = world.store.canaries.runs(canary.id)
    follower = run_of(world, control.id)

    assert (mine.arm, live.options.by_release, live.pipeline_version) == ("canary", R, "v2")
    assert live.for_drains
    assert world.claim() == []
    assert (control.arm, follower.kind, follower.pipeline_version) == ("control", "replay", "v1")
    assert follower.options.is_staged
    assert not follower.for_drains


def test_what_is_tried_drained_or_of_another_source_is_left_alone(world: World) -> None:
    canary = begin(world, "pages", "acme.com")
    tried = start(world, "tried", RunOptions(pages=3))
    other = world.start(source="other.org")

    assert tried.options.leaves is None
    assert run_of(world, other).options.canary is None
    assert world.store.canaries.runs(canary.id) == []
    assert world.store.canaries.end(canary.id, "active", "test", "enough")
    assert start(world, "later").options.leaves is None


def test_what_follows_a_cancelled_run_is_cancelled(world: World) -> None:
    canary = begin(world, "pages", "acme.com")
    live = start(world, "one")
    world.store.runs.cancel(live.id, "test", "")
    assert world.store.followers.start("test") == []
    [_, its] = world.store.canaries.runs(canary.id)
    assert run_of(world, its.id).state is RunState.CANCELLED


def test_source_has_one_canary_at_a_time_also_while_one_is_rolled_back(world: World) -> None:
    first = begin(world, "pages", "acme.com")
    with pytest.raises(Refused, match="canary 1 has a part"):
        begin(world, "sources", "other.org", "acme.com")
    assert world.store.canaries.stop(first.id, "active", "test", "enough")
    with pytest.raises(Refused, match="canary 1 has a part"):
        begin(world, "pages", "acme.com")
    assert start(world, "meanwhile").options.leaves is None
    assert world.store.canaries.rolled_back(first.id, 0, 0)
    begin(world, "pages", "acme.com")


def test_of_two_leaders_one_takes_a_look_and_one_moves_it(world: World) -> None:
    canary = begin(world, "pages", "acme.com")
    look = Look(1, 50, 400, True)
    taken = [world.store.canaries.note_look(canary.id, look) for _ in range(2)]
    stopped = [world.store.canaries.stop(canary.id, "active", "a", "x") for _ in range(2)]
    assert (taken, stopped) == ([True, False], [True, False])
    assert not world.store.canaries.has_passed(canary.id, "too late")


def test_page_of_which_something_is_open_is_not_judged_yet(world: World) -> None:
    canary = begin(world, "pages", "acme.com")
    start(world, "one")
    [root] = world.claim()
    world.turn("w", done(root, children=pages(3)))
    first, second, third = world.claim()
    world.turn(
        "w", done(first, children=[a_job("c", stage="persist")]), done(second), quarantined(third)
    )

    judged = world.store.canaries.samples(canary)
    assert sorted(each.has_failed for each in judged) == [False, True]
    [candidate] = world.claim()
    world.turn("w", quarantined(candidate))
    judged = world.store.canaries.samples(canary)
    assert sorted(each.has_failed for each in judged) == [False, True, True]
    assert world.store.canaries.pages(canary.id) == {"canary": 0, "control": 3}


def test_page_of_two_runs_is_known_as_the_same_page(world: World) -> None:
    canary = begin(world, "pages", "acme.com")
    for key in ("one", "two"):
        start(world, key)
        [root] = world.claim()
        world.turn("w", done(root, children=pages(1)))
        [page] = world.claim()
        world.turn("w", done(page))

    first, second = world.store.canaries.samples(canary)
    assert first.name == second.name != ""
