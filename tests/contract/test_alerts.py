"""Alerts: one per rule and source, each change with its line in the journal, each notice sent once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.alerts.sample import WHOLE, is_sampled
from penstock.gates.capacity import Capacity
from penstock.jobs.job import Claimed
from penstock.store.alert_rows import AlertFilter, AlertRow, Opening
from penstock.store.snapshots import Kept
from penstock.store.upkeep import Keep
from tests.contract.scenes import World, a_save, done, quarantined

DAY_S = 86_400.0
STANDING = AlertFilter(standing_only=True)


def opened(world: World, rule: str = "zero-yield", source: str = "acme.com", **more: object) -> int:
    about = {"severity": "high", "summary": "nothing was saved", **more}
    found = world.store.alerts.open(Opening(rule, world.source(source), **about))  # type: ignore[arg-type]
    assert found is not None
    return found


def the(world: World, alert_id: int) -> AlertRow:
    found = world.store.alerts.get(alert_id)
    assert found is not None
    return found


def a_page(number: int, job: Claimed) -> Kept:
    about: tuple[Any, ...] = (
        f"https://acme.com/{number}",
        200,
        {},
        1.0,
        f"hash{number}",
        "segment",
        number,
        10,
    )
    return Kept(number, job.id, job.run_id, *about)


def kept(world: World, jobs: Sequence[Claimed]) -> list[int]:
    return [row.id for job in jobs for row in world.store.snapshots.of_job(job.id)]


def journal(world: World) -> list[tuple[str, str | None, str, str]]:
    rows = world.store.journal.events(kind="alert", limit=50)
    return [(row.kind, row.source, row.actor, row.detail) for row in rows]


def test_alert_of_a_rule_and_source_stands_once(world: World) -> None:
    first = opened(world)
    assert world.store.alerts.open(Opening("zero-yield", world.source(), "high", "again")) is None
    other = opened(world, source="other.com")
    rule = opened(world, rule="quality-drop")
    found = world.store.alerts.newest(STANDING)
    assert [row.id for row in found] == [rule, other, first]
    assert the(world, first).incident_id == first
    assert world.store.alerts.end(the(world, first), "it yields again")
    assert opened(world) not in (first, other, rule)


def test_alert_goes_from_open_over_acknowledged_to_resolved_and_the_journal_says_who(
    world: World,
) -> None:
    alert, alerts = opened(world), world.store.alerts
    assert alerts.acknowledge(alert, "ann", "looking")
    assert not alerts.acknowledge(alert, "bob", "me too")
    assert (the(world, alert).state, the(world, alert).actor) == ("acknowledged", "ann")
    assert alerts.snooze(alert, world.clock.now() + 60.0, "ann", "")
    assert not alerts.wake(the(world, alert), [])
    world.clock.advance(61.0)
    assert alerts.wake(the(world, alert), [])
    assert alerts.resolve(alert, "ann", "the parser is fixed")
    assert not alerts.resolve(alert, "ann", "")
    assert not alerts.snooze(alert, world.clock.now() + 60.0, "ann", "")
    assert [(kind, actor) for kind, _, actor, _ in journal(world)] == [
        ("alert.opened", "alerts"),
        ("alert.acknowledged", "ann"),
        ("alert.snoozed", "ann"),
        ("alert.snooze_ended", "alerts"),
        ("alert.resolved", "ann"),
    ]
    last = journal(world)[-1]
    assert last[1::2] == ("acme.com", f"zero-yield ({alert}): the parser is fixed")


def test_alert_that_a_person_resolved_is_watched_until_its_condition_has_ended(
    world: World,
) -> None:
    held, ended = opened(world), opened(world, source="other.com")
    world.store.alerts.resolve(held, "ann", "")
    world.store.alerts.end(the(world, ended), "")
    world.clock.advance(DAY_S)
    since = world.clock.now() - 60.0
    assert [(row.id, row.is_held) for row in world.store.alerts.watched(since)] == [(held, True)]
    world.store.alerts.let_go(held)
    assert world.store.alerts.watched(since) == []


def test_route_hears_once_of_an_incident_and_once_of_its_end(world: World) -> None:
    alerts = world.store.alerts
    lead = opened(world, routes=("oncall",))
    second = opened(world, source="b.com", incident_id=lead, routes=("oncall", "mail"))
    assert [(n.alert_id, n.route, n.change) for n in alerts.waiting()] == [
        (second, "mail", "opened"),
        (lead, "oncall", "opened"),
    ]
    alerts.end(the(world, lead), "")
    assert len(alerts.waiting()) == 2  # the incident stands
    alerts.end(the(world, second), "")
    changes = [(n.route, n.change) for n in alerts.waiting()]
    assert changes.count(("oncall", "resolved")) == changes.count(("mail", "resolved")) == 1


def test_notice_is_put_into_the_outbox_once_and_delivered_once(world: World) -> None:
    alerts, hooks = world.store.alerts, world.store.hooks
    opened(world, routes=("oncall",))
    notices = alerts.waiting()
    first = alerts.send("oncall", '{"alerts":[]}', notices)
    assert first is not None
    assert alerts.send("oncall", "{}", notices) is None
    assert alerts.waiting() == []
    opened(world, source="b.com", routes=("oncall",))
    assert alerts.send("oncall", "{}", alerts.waiting()) is not None  # at the same moment
    parcels = hooks.claim(10, 30.0)
    assert [parcel.hook for parcel in parcels] == ["alert:oncall"] * 2
    hooks.accept(parcels[0], "hooks")
    hooks.refuse(parcels[1], "it answered 500", 60.0, "hooks")
    assert [row.state for row in hooks.outbox()] == ["failing", "delivered"]
    [failing] = world.store.alert_facts.undelivered(0.0)
    assert (failing.hook, failing.given_up, failing.failed) == ("alert:oncall", [], 1)
    hooks.refuse(parcels[1], "it answered 500", None, "hooks")
    assert len(world.store.alert_facts.undelivered(0.0)[0].given_up) == 1


def test_notice_and_alert_are_one(world: World) -> None:
    with (
        world.kind.breaking(world.path, "INSERT", "alert_notice"),
        pytest.raises(Exception, match="planted"),
    ):
        opened(world, routes=("oncall",))
    assert world.store.alerts.newest(STANDING) == []
    assert journal(world) == []


def test_snapshot_that_is_evidence_stays_until_the_alert_is_dropped(world: World) -> None:
    world.start_with_pages(2)
    jobs = world.claim()
    pages = [a_page(number, job) for number, job in enumerate(jobs, 1)]
    world.store.turn("w", [done(job) for job in jobs], Capacity(0), world.limits, kept=pages)
    pinned = pages[0].id
    alert = opened(world, pins=(pinned,))
    keep = Keep(None, DAY_S, None, DAY_S)
    world.clock.advance(2 * DAY_S)
    while world.store.upkeep.prune(keep):
        pass
    assert kept(world, jobs) == [pinned]
    assert world.store.alerts.pins(alert) == [pinned]
    world.store.alerts.end(the(world, alert), "")
    world.clock.advance(2 * DAY_S)
    while world.store.upkeep.prune(keep):
        pass
    while world.store.upkeep.prune(keep):
        pass
    assert kept(world, jobs) == []
    assert world.store.alerts.get(alert) is None


def test_incident_is_dropped_as_a_whole(world: World) -> None:
    lead = opened(world)
    second = opened(world, source="b.com", incident_id=lead)
    world.store.alerts.end(the(world, lead), "")
    world.clock.advance(2 * DAY_S)
    world.store.upkeep.prune(Keep(None, DAY_S, None, None))
    assert the(world, lead).state == "resolved"
    world.store.alerts.end(the(world, second), "")
    world.clock.advance(2 * DAY_S)
    world.store.upkeep.prune(Keep(None, DAY_S, None, None))
    assert world.store.alerts.newest(AlertFilter()) == []


def test_facts_for_the_rules_come_from_counters(world: World) -> None:
    run_id = world.start_with_pages(3)
    jobs = world.claim()
    world.start_with_pages(2, source="b.com")
    world.turn("w", done(jobs[0], saves=[a_save("k", {})]), *(quarantined(job) for job in jobs[1:]))
    facts = world.store.alert_facts
    [first, second] = facts.sources()
    assert (first.key, first.waiting, first.good_at) == ("acme.com", 0, world.clock.now())
    assert (second.key, second.good_at) == ("b.com", None)
    [run] = facts.runs(first.id, 0.0, 10)
    assert (run.id, run.state, run.ended, run.failed, run.inserted) == (run_id, "partial", 4, 2, 1)
    assert facts.ended_since(world.clock.now()) == {first.id}
    assert facts.ended_since(world.clock.now() + 1.0) == set()
    assert facts.missed_in_a_row([(first.id, "daily")]) == {(first.id, "daily"): 0}


def test_sample_of_the_runs_of_a_source_is_the_same_on_every_database(world: World) -> None:
    for number in range(40):
        world.start(key=f"run-{number}")
        world.turn("w", done(world.one()))
    facts, source = world.store.alert_facts, world.source()
    ids = [run.id for run in facts.runs(source, 0.0, 100)]
    assert len(ids) == 40
    chosen = [run.id for run in facts.runs(source, 0.0, 100, before_id=ids[-5], share=WHOLE // 4)]
    assert chosen == [run for run in ids[:-5] if is_sampled(run, WHOLE // 4)]
    assert 5 <= len(chosen) <= 13
