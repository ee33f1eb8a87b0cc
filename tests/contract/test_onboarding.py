"""Onboarding: the states of a source are moved as the table says, and the gates go by them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import Refused
from penstock.gates.lane import LaneLimits
from penstock.gates.onboarding import ComplianceTerms, SourceState, source_may_move
from penstock.jobs.effects import Effects, Proposed
from penstock.jobs.run import RunKind, RunState
from penstock.store.onboardings import Check
from tests.contract.scenes import World, a_job, a_save, done
from tests.contract.test_explaining import closed, explained
from tests.contract.test_outlook import outlooks

DAY_S = 86_400.0
REQUIRED = LaneLimits(compliance=ComplianceTerms(is_required=True))
NOBODY, ACTIVE, PROPOSED = None, SourceState.ACTIVE, SourceState.PROPOSED


def state(world: World, key: str = "acme.com") -> SourceState | None:
    row = world.store.onboardings.get(key)
    return None if row is None else row.state


def propose(world: World, key: str = "acme.com") -> int:
    source_id = world.source(key)
    leaves = state(world, key) or ACTIVE
    world.store.onboardings.propose(source_id, leaves, "", "team", "ann", "found it")
    return source_id


def checked(world: World, source_id: int, **found: Any) -> None:
    checks = [Check("robots", "allowed", "https://acme.com/robots.txt", "r1", "User-agent: *")]
    found = {"robots": "allowed", "terms": ("accepted", "https://acme.com/terms", "t1"), **found}
    world.store.onboardings.note_checks(source_id, ACTIVE, checks, "ann", "read them", **found)


def activated(world: World, key: str = "acme.com") -> int:
    source_id = propose(world, key)
    checked(world, source_id)
    world.store.onboardings.approve(source_id, PROPOSED, "ann", "fine")
    world.store.onboardings.activate(source_id, 1, "ann", "good")
    return source_id


def kinds(world: World) -> list[str]:
    events = world.store.journal.events(limit=500, kind="source")
    return [event.kind.removeprefix("source.") for event in events]


# The states.

VERBS = ("propose", "approve", "activate", "retire")
ENTERS = {
    "propose": SourceState.PROPOSED,
    "approve": SourceState.TRIAL,
    "activate": SourceState.ACTIVE,
    "retire": SourceState.RETIRED,
}


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=st.lists(st.sampled_from(VERBS), min_size=1, max_size=7))
def test_verbs_move_a_source_exactly_as_the_table_allows(world: World, acts: list[str]) -> None:
    key = f"s{len(world.limits)}.com"
    source_id = world.source(key)
    assert propose(world, key)
    for number, act in enumerate(acts):
        before = state(world, key)
        assert before is not None
        has_moved = perform(world, source_id, act, before, f"because {number}")
        may_move = source_may_move(before, ENTERS[act])
        assert has_moved == may_move, (before, act)
        assert state(world, key) is (ENTERS[act] if may_move else before)
        if may_move:
            [event] = world.store.journal.events(key, limit=1, kind="source")
            assert (event.actor, f"because {number}" in event.detail) == ("bob", True)


def perform(world: World, source_id: int, act: str, before: SourceState, reason: str) -> bool:
    nouns = world.store.onboardings
    if act == "propose":
        # The application refuses what is not retired; the store goes by the state that it is told.
        leaves = SourceState.RETIRED
        return nouns.propose(source_id, leaves, "", "team", "bob", reason)
    if act == "approve":
        return nouns.approve(source_id, before, "bob", reason)
    if act == "activate":
        return nouns.activate(source_id, 7, "bob", reason)
    return nouns.retire(source_id, before, "bob", reason) is not None


@pytest.mark.parametrize(
    "change",
    [
        "state = 'gone'",
        "state = 'trial', approved_at = NULL",
        "state = 'active', activated_at = NULL",
        "robots_verdict = 'allowed', robots_at = NULL",
        "legal_hold_at = 1.0, legal_hold_by = ''",
    ],
)
def test_database_refuses_a_state_without_what_led_to_it(world: World, change: str) -> None:
    activated(world)
    with pytest.raises(Exception, match=r"(?i)check"):
        world.tamper(f"UPDATE onboarding SET {change}")


def test_source_proposed_again_has_to_be_checked_again(world: World) -> None:
    source_id = activated(world)
    world.store.onboardings.retire(source_id, ACTIVE, "ann", "they closed")
    propose(world)

    row = world.store.onboardings.get("acme.com")

    assert row is not None
    assert (row.robots_verdict, row.terms_verdict, row.approved_at) == ("", "", None)
    assert len(world.store.onboardings.checks(source_id)) == 1


# What may be started.


@pytest.mark.parametrize("moves", [(), ("approve", "activate", "retire")])
def test_run_of_a_source_that_is_not_active_is_refused_in_its_own_transaction(
    world: World, moves: tuple[str, ...]
) -> None:
    source_id = propose(world)
    for act in moves:
        now = state(world)
        assert now is not None
        assert perform(world, source_id, act, now, "")

    with pytest.raises(Refused, match=r"acme\.com is (proposed|retired)"):
        world.start()

    assert world.store.runs.newest() == []


def test_source_in_trial_has_probes_and_nothing_else(world: World) -> None:
    source_id = propose(world)
    checked(world, source_id)
    world.store.onboardings.approve(source_id, PROPOSED, "ann", "")

    with pytest.raises(Refused, match="in trial"):
        world.start(key="full")
    world.start(key="probe", kind=RunKind.PROBE)

    assert len(world.claim()) == 1


def test_retiring_ends_unfinished_runs_in_the_same_transaction(world: World) -> None:
    source_id = activated(world)
    run_id = world.start_with_pages(3)
    running = world.one()

    with pytest.raises(Exception, match="planted"), world.breaking("INSERT", "event"):
        world.store.onboardings.retire(source_id, ACTIVE, "ann", "they closed")
    assert (state(world), world.run(run_id).state) == (ACTIVE, RunState.RUNNING)

    assert world.store.onboardings.retire(source_id, ACTIVE, "ann", "they closed") == 1
    assert world.run(run_id).state is RunState.CANCELLED
    assert world.turn("w", done(running)).lost == [running.id]


# Legal hold.


def test_legal_hold_stops_what_runs_and_lets_it_go_on_when_it_ends(world: World) -> None:
    source_id = world.source()
    world.start_with_pages(3)
    running = world.claim(slots=2)

    with pytest.raises(Exception, match="planted"), world.breaking("INSERT", "event"):
        world.store.onboardings.legal_hold(source_id, ACTIVE, "ann", "a letter came")
    assert world.job(running[0].id).state == "running"

    assert world.store.onboardings.legal_hold(source_id, ACTIVE, "ann", "a letter came") == 2
    assert world.store.onboardings.legal_hold(source_id, ACTIVE, "ann", "again") is None
    late = [done(job, saves=[a_save("k", {})]) for job in running]
    assert sorted(world.turn("w", *late).lost) == sorted(job.id for job in running)
    assert world.store.records.of("product", "", 10) == []
    assert world.claim() == []
    seen = outlooks(world)["acme.com"]
    assert (seen.stands, seen.gate) == ("person", "legal_hold")
    assert "by ann: a letter came" in closed(seen)["legal_hold"].by

    assert world.store.onboardings.legal_release(source_id, "bob", "settled")
    assert sorted(job.attempt for job in world.claim()) == [1, 2, 2]
    assert kinds(world)[-2:] == ["legal_hold", "legal_release"]


# Compliance.


def test_checks_go_stale_and_only_a_new_check_opens_the_gate(world: World) -> None:
    source_id = activated(world)
    world.start_with_pages(2)
    assert len(world.claim(slots=1)) == 1

    world.clock.advance(7 * DAY_S + 1)
    world.store.workers.beat("w")
    assert world.claim() == []
    seen = outlooks(world)["acme.com"]
    assert closed(seen)["compliance"].by == "robots.txt was last checked 7 d ago"
    assert closed(explained(world, source="acme.com"))["compliance"].command == (
        "penstock sources check acme.com"
    )

    checked(world, source_id)
    assert len(world.claim()) == 1


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"robots": "disallowed"}, "robots.txt does not allow it"),
        ({"terms": ("changed", "https://acme.com/terms", "t1")}, "its terms have changed"),
    ],
)
def test_what_a_check_finds_closes_the_gate_at_once(
    world: World, found: dict[str, Any], words: str
) -> None:
    source_id = activated(world)
    world.start_with_pages(2)

    checked(world, source_id, **found)

    assert world.claim() == []
    assert words in closed(outlooks(world)["acme.com"])["compliance"].by


def test_check_that_could_not_be_made_leaves_the_last_one(world: World) -> None:
    source_id = activated(world)
    world.start_with_pages(1)

    checked(world, source_id, robots="", terms=None)

    assert len(world.claim()) == 1


def test_post_processing_goes_on_while_compliance_is_stale(world: World) -> None:
    activated(world)
    world.start_with_pages(1)
    world.turn("w", done(world.one(), children=[a_job("c", stage="persist")]))
    world.clock.advance(8 * DAY_S)
    world.store.workers.beat("w")

    assert [job.stage for job in world.claim()] == ["persist"]


def test_project_that_requires_onboarding_starts_nothing_that_nobody_approved(
    world: World,
) -> None:
    world.start_with_pages(2)
    world.source("acme.com", REQUIRED)

    assert world.claim() == []
    seen = outlooks(world)["acme.com"]
    assert list(closed(seen))[:2] == ["lifecycle", "compliance"]


# What discovers sources.


def discovered(key: str) -> Effects:
    return Effects(proposals=[Proposed(key, b'{"connector":"web"}', "linked")])


def test_pipeline_proposes_what_nobody_knows_and_decides_nothing(world: World) -> None:
    activated(world, "known.org")
    retired = activated(world, "gone.org")
    world.store.onboardings.retire(retired, ACTIVE, "ann", "")
    world.source("plain.org")
    world.start_with_pages(5)
    jobs = world.claim()

    found = ("new.org", "new.org", "known.org", "gone.org", "plain.org")
    world.turn("w", *(done(j, effects=discovered(k)) for j, k in zip(jobs, found, strict=True)))

    seen = {row.source: (row.state, row.proposed_by) for row in world.store.onboardings.all()}
    assert seen["new.org"] == (PROPOSED, "pipeline of acme.com")
    assert (seen["known.org"][0], seen["gone.org"][0]) == (ACTIVE, SourceState.RETIRED)
    assert "plain.org" not in seen
    assert kinds(world).count("proposed") == 3
    with pytest.raises(Refused, match="proposed"):
        world.start(source="new.org", key="more")


def test_texts_of_checks_are_stored_once_by_their_hash(world: World) -> None:
    source_id = activated(world)
    checked(world, source_id)

    assert world.store.onboardings.text("r1") == "User-agent: *"
    assert [each.verdict for each in world.store.onboardings.checks(source_id)] == ["allowed"] * 2
