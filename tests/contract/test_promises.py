"""Promises: a schema that nobody verifies, and runs that end too late; each is told of once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.leader.signals import SignalChore
from penstock.engine.leader.sla import SlaChore
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Flush
from penstock.jobs.run import RunKind, RunState
from penstock.project import run_options
from penstock.store import promises
from tests.contract.scenes import World, done, quarantined
from tests.contract.schedule_bench import Bench

HOUR_S = 3600.0
DAY_S = 86_400.0
VERIFIED = Effects(is_schema_verified=True)
STALE = "schema_freshness: its schema was not verified for longer than 30 d"
SHOP = "acme.com"


class Watched(Bench):
    """A project whose promises are looked at and whose signals are delivered."""

    def write(self, sources: dict[str, dict[str, Any]]) -> None:
        super().write(sources)
        self.promises = SlaChore(self.project, self.world.store)
        self.signals = SignalChore(self.project, self.world.store)
        self.signals.plan()

    def look(self, after_s: float = 20.0) -> list[int]:
        """What is started by what is found after so long."""
        self.world.clock.advance(after_s)
        self.promises.look()
        return self.signals.look()

    def start(self, kind: RunKind = RunKind.FULL, *, is_draft: bool = False) -> int:
        source = self.project.source(SHOP)
        run_id, _ = self.world.store.runs.start(
            self.world.source(SHOP),
            kind,
            self.project.graph(source).plan(source.priority, RunKind.FULL),
            "v1",
            key=f"{kind} {self.world.clock.now()}",
            actor="test",
            options=run_options(source),
            is_draft=is_draft,
        )
        return run_id

    def one(self) -> Claimed:
        self.world.source(SHOP)
        return self.world.one()

    def end(self) -> None:
        self.world.turn("w", done(self.one()))

    def told(self) -> list[tuple[str, str]]:
        names = ("sla.", "schema.")
        events = self.world.store.journal.events(limit=100_000)
        return [(each.kind, each.detail) for each in events if each.kind.startswith(names)]

    def raised(self) -> list[str]:
        names = ("sla.", "schema.")
        signals = self.world.store.signals.after()
        return [each.name for each in signals if each.name.startswith(names)]


@pytest.fixture
def bench(world: World, tmp_path: Path) -> Callable[..., Watched]:
    def make(**settings: Any) -> Watched:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        return Watched(world, folder, {SHOP: settings})

    return make


def mapped(bench: Callable[..., Watched]) -> Watched:
    return bench(schema_freshness="30d", schedule={"name": "map", "signal": "schema.stale"})


# Schemas.


def test_schema_that_is_never_verified_is_stale_once_and_starts_one_run(
    bench: Callable[..., Watched],
) -> None:
    b = mapped(bench)
    b.world.source(SHOP)
    b.world.clock.advance(100 * DAY_S)
    assert b.look() == []
    assert b.look(30 * DAY_S - 5) == [], "it counts from when it was promised first"

    [run_id] = b.look()
    assert b.told() == [("schema.stale", STALE)]
    run = b.world.run(run_id)
    assert run.options.signal is not None
    assert (run.options.signal.name, run.options.signal.source) == ("schema.stale", SHOP)
    assert run.options.signal.data["rule"] == "schema_freshness"
    b.end()
    assert [each for _ in range(5) for each in b.look(DAY_S)] == [], "a run that verifies nothing"
    assert b.raised() == ["schema.stale"]
    [breach] = b.world.store.promises.breaches(open_only=True)
    assert (breach.rule, breach.source) == ("schema_freshness", SHOP)


def test_step_that_verifies_the_schema_ends_that_until_it_is_stale_again(
    bench: Callable[..., Watched],
) -> None:
    b = mapped(bench)
    b.look()
    [run_id] = b.look(31 * DAY_S)
    b.world.turn("w", done(b.one(), effects=VERIFIED))
    verified_at = b.world.clock.now()
    assert b.world.store.promises.verification(b.world.source(SHOP)).verified_at == verified_at

    b.look()
    assert [kind for kind, _ in b.told()] == ["schema.stale", "schema.verified", "schema.restored"]
    assert b.world.store.promises.breaches(open_only=True) == []
    assert b.look(30 * DAY_S - 25) == []
    [again] = b.look(20)
    assert again > run_id
    assert b.raised() == ["schema.stale", "schema.restored", "schema.stale"]


def test_schema_is_verified_with_the_attempt_and_only_with_it(
    bench: Callable[..., Watched],
) -> None:
    b = bench(schema_freshness="30d")
    b.start()
    zombie = b.one()
    b.world.store.workers.bury("w", "killed")
    b.world.register("w")
    b.world.turn("w", done(zombie, effects=VERIFIED))
    assert b.world.store.promises.verification(b.world.source(SHOP)).verified_at is None

    job = b.one()
    b.world.turn("w", Flush(job.id, job.attempt, VERIFIED, number=1))
    assert (
        b.world.store.promises.verification(b.world.source(SHOP)).verified_at == b.world.clock.now()
    )
    b.world.turn("w", done(job))


def test_every_page_may_say_so_and_the_journal_says_it_once_for_a_run(world: World) -> None:
    world.start_with_pages(4)
    one, two, *others = world.claim()
    world.turn("w", done(one, effects=VERIFIED), done(two, effects=VERIFIED))
    world.clock.advance(60)
    world.turn("w", *(done(job, effects=VERIFIED) for job in others))

    assert world.kinds().count("schema.verified") == 1
    assert world.store.promises.verification(world.source()).verified_at == world.clock.now()


def test_schema_that_was_verified_before_it_was_promised_is_as_old_as_that(
    bench: Callable[..., Watched],
) -> None:
    b = bench()
    b.start()
    b.world.turn("w", done(b.one(), effects=VERIFIED))
    b.world.clock.advance(20 * DAY_S)
    b.write({SHOP: {"schema_freshness": "30d"}})
    b.look()
    b.look(9 * DAY_S)
    assert b.raised() == []
    b.look(DAY_S)
    assert b.raised() == ["schema.stale"]


def test_promise_that_somebody_else_made_meanwhile_keeps_its_time(
    bench: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    b = mapped(bench)
    b.look()
    promised_at = b.world.clock.now()
    assert b.world.store.promises.verification(b.world.source(SHOP)).promised_at == promised_at

    monkeypatch.setattr(b.world.store.promises, "_ask", lambda *_: [])  # as it was read before
    b.look(DAY_S)
    monkeypatch.undo()
    assert b.world.store.promises.verification(b.world.source(SHOP)).promised_at == promised_at


def test_promise_that_is_taken_back_is_no_longer_broken(bench: Callable[..., Watched]) -> None:
    b = mapped(bench)
    b.look()
    b.look(31 * DAY_S)
    b.write({SHOP: {}})
    b.look()
    assert b.raised() == ["schema.stale", "schema.restored"]


# Runs that end too late.


def test_run_that_ends_too_late_between_two_looks_is_told_of_once(
    bench: Callable[..., Watched],
) -> None:
    b = bench(deadline="2h")
    b.look()
    run_id = b.start()
    b.world.clock.advance(2 * HOUR_S + 1)
    b.end()

    detail = f"deadline: run {run_id} took longer than 2 h"
    assert b.told() == [("sla.breached", detail), ("sla.restored", detail)]
    for _ in range(3):
        b.look()
    assert b.raised() == ["sla.breached", "sla.restored"]
    [breach] = b.world.store.promises.breaches()
    assert (breach.rule, breach.run_id, breach.source) == ("deadline", run_id, SHOP)
    assert breach.ended_at == breach.since + 1
    [signal, _] = [each for each in b.world.store.signals.after() if each.name.startswith("sla.")]
    assert (signal.source, signal.run_id, signal.data["source"]) == (SHOP, run_id, SHOP)


def test_run_that_was_seen_to_be_late_is_not_told_of_again_when_it_ends(
    bench: Callable[..., Watched],
) -> None:
    b = bench(deadline="2h")
    b.start()
    b.look(3 * HOUR_S)
    assert b.raised() == ["sla.breached"]
    b.end()
    assert b.raised() == ["sla.breached", "sla.restored"], "when it ends, and not at the next look"
    b.look()
    assert len(b.raised()) == len(b.told()) == 2


def test_who_looked_while_the_run_ended_tells_nothing_twice(
    bench: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    b = bench(deadline="2h")
    b.start()
    job = b.one()
    b.world.clock.advance(3 * HOUR_S)
    written = promises.Promises._write

    def late(verbs: promises.Promises, *found: Any) -> int:
        b.world.turn("w", done(job))
        return written(verbs, *found)

    monkeypatch.setattr(promises.Promises, "_write", late)
    b.look()
    monkeypatch.undo()
    b.look()
    assert b.raised() == ["sla.breached", "sla.restored"]
    assert b.world.store.promises.breaches(open_only=True) == []


def test_run_in_time_and_runs_of_other_kinds_break_no_deadline(
    bench: Callable[..., Watched],
) -> None:
    b = bench(deadline="2h")
    b.start()
    b.world.clock.advance(2 * HOUR_S)
    b.end()
    b.start(RunKind.BACKFILL)
    b.world.clock.advance(5 * HOUR_S)
    b.end()
    b.look()
    assert b.told() == []


def test_run_that_is_cancelled_too_late_is_late_and_a_draft_is_not(
    bench: Callable[..., Watched],
) -> None:
    b = bench(deadline="2h")
    draft = b.start(is_draft=True)
    b.world.clock.advance(5 * HOUR_S)
    b.world.store.runs.cancel(draft, "test", "")
    assert b.told() == []

    run_id = b.start()
    b.world.clock.advance(5 * HOUR_S)
    b.world.store.runs.cancel(run_id, "test", "")
    assert b.raised() == ["sla.breached", "sla.restored"]
    while b.world.store.runs.sweep_cancelled():
        pass


def test_draft_has_its_time_from_when_it_was_started(bench: Callable[..., Watched]) -> None:
    b = bench(deadline="2h")
    draft = b.start(is_draft=True)
    b.world.clock.advance(5 * HOUR_S)
    b.world.store.runs.start_draft(draft, "test", "")
    b.look(HOUR_S)
    b.end()
    assert b.told() == []


def test_run_that_is_opened_again_has_its_time_again(bench: Callable[..., Watched]) -> None:
    b = bench(deadline="2h")
    run_id = b.start()
    b.world.turn("w", quarantined(b.one()))
    assert b.world.run(run_id).state == RunState.FAILED
    b.world.clock.advance(5 * DAY_S)
    b.world.store.runs.retry_failed(run_id, "test", "")
    b.look(HOUR_S)
    b.end()
    assert b.world.run(run_id).state == RunState.COMPLETED
    assert b.told() == []


def test_run_is_held_to_the_deadline_that_it_was_started_with(
    bench: Callable[..., Watched],
) -> None:
    b = bench(deadline="2h")
    b.start()
    b.look(3 * HOUR_S)
    b.write({SHOP: {"deadline": "1h"}})
    b.look()
    b.end()
    b.look()
    assert b.raised() == ["sla.breached", "sla.restored"]


def test_runs_that_end_late_in_one_turn_are_each_told_of(world: World, tmp_path: Path) -> None:
    b = Watched(world, tmp_path, {SHOP: {"deadline": "1m"}})
    first = b.start()
    b.world.clock.advance(1)
    second = b.start()
    jobs = b.world.claim()
    b.world.clock.advance(100)
    b.world.turn("w", *(done(job) for job in jobs))
    assert [each.run_id for each in b.world.store.promises.breaches()] == [second, first]
    assert b.raised() == ["sla.breached", "sla.breached", "sla.restored", "sla.restored"]


# What was broken and is kept again before anybody looks.

OLD = "freshness: no good run for longer than 2 h"


def test_source_that_was_stale_between_two_looks_is_told_of_once(
    bench: Callable[..., Watched],
) -> None:
    b = bench(freshness="2h")
    b.start()
    b.end()
    good_at = b.world.clock.now()
    b.look()
    b.world.clock.advance(3 * HOUR_S)
    b.start()
    b.end()

    assert b.told() == [("sla.breached", OLD), ("sla.restored", OLD)]
    [breach] = b.world.store.promises.breaches()
    assert (breach.rule, breach.since) == ("freshness", good_at + 2 * HOUR_S)
    assert (breach.run_id, breach.ended_at) == (None, b.world.clock.now())
    for _ in range(3):
        b.look()
    assert b.raised() == ["sla.breached", "sla.restored"]


def test_source_that_had_no_good_run_is_as_old_as_it_is_known(
    bench: Callable[..., Watched],
) -> None:
    b = bench(freshness="2h")
    known_at = b.world.clock.now()
    b.world.source(SHOP)
    b.world.clock.advance(3 * HOUR_S)
    b.start()
    b.end()
    [breach] = b.world.store.promises.breaches()
    assert breach.since == known_at + 2 * HOUR_S


def test_staleness_that_was_seen_is_over_when_the_run_ends_and_told_of_once(
    bench: Callable[..., Watched],
) -> None:
    b = bench(freshness="2h")
    b.look()
    b.look(3 * HOUR_S)
    assert b.raised() == ["sla.breached"]
    b.start()
    b.end()
    assert b.raised() == ["sla.breached", "sla.restored"], "when it ends, and not at the next look"
    b.look()
    assert len(b.raised()) == len(b.told()) == 2


def test_only_a_good_run_of_the_right_kind_ends_staleness(bench: Callable[..., Watched]) -> None:
    b = bench(freshness="2h")
    b.world.source(SHOP)
    b.world.clock.advance(3 * HOUR_S)
    b.start()
    b.world.turn("w", quarantined(b.one()))
    b.start(RunKind.BACKFILL)
    b.end()
    b.world.store.runs.cancel(b.start(), "test", "")
    assert b.told() == []


def test_run_within_its_promise_breaks_nothing(bench: Callable[..., Watched]) -> None:
    b = bench(freshness="2h")
    b.start()
    b.world.clock.advance(2 * HOUR_S)
    b.end()
    assert b.told() == []


def test_run_that_is_opened_again_is_left_to_those_who_look(
    bench: Callable[..., Watched],
) -> None:
    b = bench(freshness="2h")
    run_id = b.start()
    b.world.turn("w", quarantined(b.one()))
    b.world.clock.advance(3 * HOUR_S)
    b.world.store.runs.retry_failed(run_id, "test", "")
    b.end()
    assert b.world.run(run_id).state == RunState.COMPLETED
    assert b.told() == [], "it may have been good before, and then nothing was broken"


def test_two_good_runs_that_end_together_tell_of_one_breach(bench: Callable[..., Watched]) -> None:
    b = bench(freshness="2h")
    b.start()
    b.world.clock.advance(1)
    b.start()
    jobs = b.world.claim()
    b.world.clock.advance(3 * HOUR_S)
    b.world.turn("w", *(done(job) for job in jobs))
    assert b.told() == [("sla.breached", OLD), ("sla.restored", OLD)]


def test_schema_that_was_stale_between_two_looks_is_told_of_once(
    bench: Callable[..., Watched],
) -> None:
    b = bench(schema_freshness="30d")
    b.look()
    promised_at = b.world.clock.now()
    b.world.clock.advance(31 * DAY_S)
    run_id = b.start()
    b.world.turn("w", done(b.one(), effects=VERIFIED))
    assert b.told() == [
        ("schema.verified", ""),
        ("schema.stale", STALE),
        ("schema.restored", STALE),
    ]
    [breach] = b.world.store.promises.breaches()
    assert (breach.since, breach.run_id) == (promised_at + 30 * DAY_S, None)
    b.look()
    assert b.raised() == ["schema.stale", "schema.restored"]
    assert b.world.store.promises.verification(b.world.source(SHOP)).run_id == run_id


def test_schema_that_is_verified_in_time_or_never_was_promised_is_not_stale(
    bench: Callable[..., Watched],
) -> None:
    b = bench()
    for _ in range(2):
        b.start()
        b.world.turn("w", done(b.one(), effects=VERIFIED))
        b.world.clock.advance(31 * DAY_S)
    b.write({SHOP: {"schema_freshness": "32d"}})
    b.start()
    b.world.turn("w", done(b.one(), effects=VERIFIED))
    assert b.raised() == []


def test_stream_that_is_alive_is_fresh_and_one_that_died_is_not(
    bench: Callable[..., Watched], world: World
) -> None:
    watched = bench(freshness="1h")
    watched.start(RunKind.STREAM)
    job = watched.one()
    for _ in range(3):
        watched.look(HOUR_S / 2)
        assert world.store.jobs.beat_stream("w", job.id, job.attempt)
    assert world.store.promises.breaches() == []

    watched.look(HOUR_S + 60.0)

    assert [each.rule for each in world.store.promises.breaches(open_only=True)] == ["freshness"]
