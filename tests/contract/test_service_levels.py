"""Service levels: freshness and deadline are watched, and a breach is told of once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.engine.leader.sla import SlaChore
from penstock.jobs.run import RunKind
from tests.contract.schedule_bench import HOUR_S, Bench


def promising(b: Bench) -> SlaChore:
    return SlaChore(b.project, b.world.store)


def told(b: Bench) -> list[tuple[str, str]]:
    return [
        (event.kind, event.detail)
        for event in b.world.store.journal.events(limit=100_000)
        if event.kind.startswith("sla.")
    ]


def raised(b: Bench) -> list[Any]:
    return [each for each in b.world.store.signals.after() if each.name.startswith("sla.")]


def test_source_without_a_good_run_breaks_its_promise_once_and_a_good_run_ends_that(
    bench: Callable[..., Bench],
) -> None:
    b = bench(**{"acme.com": {"freshness": "26h"}})
    promises = promising(b)
    promises.look()
    assert told(b) == []
    for _ in range(5):
        b.world.clock.advance(7 * HOUR_S)
        promises.look()
    assert told(b) == [("sla.breached", "freshness: no good run for longer than 26 h")]
    [breach] = b.world.store.promises.breaches(open_only=True)
    assert (breach.rule, breach.ended_at) == ("freshness", None)

    b.world.store.runs.cancel(b.world.start(key="cancelled"), "test", "")
    while b.world.store.runs.sweep_cancelled():
        pass
    b.world.clock.advance(60)
    promises.look()
    assert len(told(b)) == 1, "a cancelled run is no good one"

    b.project.clock = b.world.clock
    b.world.store.runs.start(
        b.world.source(),
        RunKind.FULL,
        b.project.graph(b.project.source("acme.com")).plan(5, RunKind.FULL),
        "v1",
        key="good",
        actor="test",
    )
    b.finish()
    b.world.clock.advance(60)
    promises.look()
    assert [kind for kind, _ in told(b)] == ["sla.breached", "sla.restored"]
    assert b.world.store.promises.breaches(open_only=True) == []
    assert [signal.name for signal in raised(b)] == ["sla.breached", "sla.restored"]

    b.world.clock.advance(27 * HOUR_S)
    promises.look()
    assert [kind for kind, _ in told(b)][2:] == ["sla.breached"], "and again, each time"


def test_run_that_takes_too_long_breaks_its_deadline_until_it_ends(
    bench: Callable[..., Bench],
) -> None:
    b = bench(**{"acme.com": {"deadline": "2h"}})
    promises = promising(b)
    plan = b.project.graph(b.project.source("acme.com")).plan(5, RunKind.FULL)
    run_id, _ = b.world.store.runs.start(
        b.world.source(), RunKind.FULL, plan, "v1", key="slow", actor="test"
    )
    for _ in range(4):
        b.world.clock.advance(HOUR_S)
        promises.look()
    assert told(b) == [("sla.breached", f"deadline: run {run_id} takes longer than 2 h")]
    [signal] = raised(b)
    assert signal.data["run"] == signal.run_id == run_id

    b.finish()
    b.world.clock.advance(60)
    promises.look()
    assert [kind for kind, _ in told(b)] == ["sla.breached", "sla.restored"]


def test_two_who_watch_tell_of_a_broken_promise_once(bench: Callable[..., Bench]) -> None:
    b = bench(**{"acme.com": {"freshness": "1h"}})
    b.world.clock.advance(2 * HOUR_S)
    promising(b).look()
    promising(b).look()
    assert len(told(b)) == 1
    assert len(raised(b)) == 1
