"""Signals: each starts one run of each schedule that waits for it, whoever delivers and whoever dies."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.alerting.recent_signals import RecentSignals
from penstock.engine.leader.signals import SignalChore
from penstock.errors import StoreError
from penstock.jobs.effects import Effects, Raised
from penstock.jobs.run import RunKind, RunState
from penstock.jobs.signals import RUN_COMPLETED
from penstock.project import Project
from penstock.store.deliveries import DeliveryRow
from penstock.store.rows import RunRow
from penstock.store.store import Store
from penstock.store.upkeep import Keep
from tests.contract.scenes import PLAIN_STEPS, World, done, quarantined

HOUR_S = 3600.0


class Bench:
    """A project's deliveries over the store of the contract."""

    def __init__(self, world: World, folder: Path, schedules: dict[str, Any]) -> None:
        self.world, self.folder = world, folder
        self.write(schedules)

    def write(self, schedules: dict[str, Any]) -> None:
        sources = {
            key: {"pipeline": "steps:plain", **({"schedule": one} if one else {})}
            for key, one in schedules.items()
        }
        (self.folder / "penstock.yaml").write_text(json.dumps({"sources": sources}))
        (self.folder / "steps.py").write_text(PLAIN_STEPS)
        self.project = Project.open(self.folder)
        self.project.clock = self.world.clock
        self.signals = self.deliverer(self.world.store)

    def deliverer(self, store: Store) -> SignalChore:
        made = SignalChore(self.project, store)
        made.plan()
        return made

    def signal(
        self, name: str, data: Any = None, source: str | None = None, key: str | None = None
    ) -> int:
        source_id = 0 if source is None else self.world.source(source)
        about: dict[str, Any] = {"actor": "test", "source_id": source_id, "key": key}
        return self.world.store.signals.raise_(name, data, **about)[0]

    def look(self) -> list[int]:
        return self.signals.look()

    def run(self, source: str, state: str = "completed", kind: RunKind = RunKind.FULL) -> int:
        """A run of a source from its start to its end."""
        key = f"{source}-{self.world.clock.now()}-{len(self.world.store.runs.newest(limit=1000))}"
        source_id = self.world.source(source)
        each = self.project.source(source)
        plan = self.project.graph(each).plan(each.priority, kind)
        run_id, _ = self.world.store.runs.start(source_id, kind, plan, "v1", key=key, actor="test")
        self.end(run_id, state)
        return run_id

    def end(self, run_id: int, state: str = "completed") -> None:
        if state == "cancelled":
            assert self.world.store.runs.cancel(run_id, "test", "")
            return
        self.world.source("a")
        for row in self.world.store.sources.all():
            self.world.source(row.key)
        for job in self.world.claim():
            end = done(job) if state == "completed" or job.run_id != run_id else quarantined(job)
            self.world.turn("w", end)
        assert self.world.run(run_id).state == state

    def became(self, signal_id: int) -> list[tuple[str, str]]:
        rows = self.world.store.deliveries.of_signals([signal_id])
        return [(row.source, row.state) for row in rows]

    def delivery(self, signal_id: int) -> DeliveryRow:
        [row] = self.world.store.deliveries.of_signals([signal_id])
        return row

    def runs(self, source: str) -> list[RunRow]:
        return self.world.store.runs.newest(source, limit=1000)


@pytest.fixture
def bench(world: World, tmp_path: Path) -> Bench:
    return Bench(world, tmp_path, {"a": {"signal": "go"}, "b": None})


# One run for each.


def test_a_signal_starts_one_run_of_each_schedule_that_waits_for_it(bench: Bench) -> None:
    bench.write({"a": {"signal": "go"}, "b": {"signal": ["other", "go"]}, "c": {"signal": "no"}})
    signal_id = bench.signal("go", {"day": 7})

    started = bench.look()

    assert len(started) == 2
    assert bench.look() == []
    assert sorted(bench.became(signal_id)) == [("a", "started"), ("b", "started")]
    run = bench.world.run(started[0])
    assert run.actor == "scheduler"
    assert run.options.signal is not None
    assert (run.options.signal.id, run.options.signal.name) == (signal_id, "go")
    assert run.options.signal.data == {"day": 7}


def test_a_signal_that_a_step_raises_starts_a_run_too(bench: Bench) -> None:
    run_id = bench.run("b")
    bench.look()
    other = bench.world.store.runs.start(
        bench.world.source("b"), RunKind.FULL, bench.project.graph(bench.project.source("b")).plan(5),
        "v1", key="raising", actor="test",
    )[0]  # fmt: skip
    [job] = bench.world.claim()
    bench.world.turn("w", done(job, effects=Effects(signals=[Raised("go", b'{"n":1}')])))

    [started] = bench.look()

    facts = bench.world.run(started).options.signal
    assert facts is not None
    assert (facts.source, facts.run, facts.data) == ("b", other, {"n": 1})
    assert run_id != other


def test_a_signal_with_a_key_is_raised_once(bench: Bench) -> None:
    first = bench.signal("go", key="today")
    assert bench.signal("go", key="today") == first
    assert bench.signal("other", key="today") != first
    assert len(bench.look()) == 1


def test_a_signal_that_nobody_waits_for_is_closed(bench: Bench) -> None:
    bench.signal("nobody")
    bench.look()
    assert bench.world.store.deliveries.open_signals() == []
    bench.write({"a": {"signal": "nobody"}})
    assert bench.look() == [], "who begins to wait later is not told what was before"


def test_signals_raised_while_nobody_leads_are_delivered_later(bench: Bench) -> None:
    ids = [bench.signal("go", n) for n in range(3)]
    bench.world.clock.advance(7 * 24 * HOUR_S)
    runs = []
    for _ in ids:
        [run_id] = bench.look()
        runs.append(run_id)
        bench.end(run_id)
    data = [run.options.signal.data for r in runs if (run := bench.world.run(r)).options.signal]
    assert data == [0, 1, 2]


def test_two_who_deliver_at_once_start_one_run_for_each(bench: Bench) -> None:
    names = [f"s{n}" for n in range(6)]
    bench.write({name: {"signal": "go", "overlap": "queue"} for name in names})
    signals = [bench.signal("go") for _ in range(2)]
    world, kind, barrier = bench.world, bench.world.kind, threading.Barrier(3)
    started: list[int] = []
    troubles: list[BaseException] = []

    def deliver() -> None:
        with closing(kind.open(world.path, world.clock)) as store:
            deliverer = bench.deliverer(store)
            barrier.wait()
            for _ in range(3):
                try:
                    started.extend(deliverer.look())
                except StoreError as error:
                    troubles.append(error)

    threads = [threading.Thread(target=deliver) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert troubles == []
    by_source = Counter(row.source for row in world.store.runs.newest(limit=100))
    assert by_source == dict.fromkeys(names, 1)
    assert len(started) == len(set(started)) == 6
    assert [state for _, state in bench.became(signals[0])] == ["started"] * 6
    assert [state for _, state in bench.became(signals[1])] == ["queued"] * 6


@pytest.mark.parametrize(("act", "table"), [("INSERT", "delivery"), ("UPDATE", "signal")])
def test_who_dies_while_delivering_leaves_the_signal_open(
    bench: Bench, act: str, table: str
) -> None:
    signal_id = bench.signal("go")
    with bench.world.breaking(act, table), pytest.raises(Exception, match="planted"):
        bench.look()
    assert bench.became(signal_id) == []
    assert len(bench.look()) == 1


@pytest.mark.parametrize("table", ["run", "job"])
def test_who_dies_while_starting_leaves_it_in_the_queue(bench: Bench, table: str) -> None:
    signal_id = bench.signal("go")
    with (
        bench.world.kind.breaking(bench.world.path, "INSERT", table),
        pytest.raises(Exception, match="planted"),
    ):
        bench.look()
    assert bench.became(signal_id) == [("a", "queued")]
    assert bench.runs("a") == []
    [run_id] = bench.look()
    assert bench.delivery(signal_id).run_id == run_id


def test_who_comes_too_late_starts_nothing_and_changes_nothing(bench: Bench) -> None:
    bench.write({"a": {"signal": "go", "overlap": "replace"}})
    signal_id = bench.signal("go")
    bench.signals._deliver(bench.world.store.deliveries.open_signals())
    [late] = bench.world.store.deliveries.queued()
    [run_id] = bench.look()
    waiter = bench.signals._waiters[late.place]
    start = bench.signals._plan_start(waiter, late)

    assert bench.world.store.deliveries.start(late, start) is None
    assert bench.world.run(run_id).state == RunState.QUEUED, "it is not replaced by itself"
    bench.end(run_id)
    assert bench.world.store.deliveries.start(late, start) is None
    bench.world.store.deliveries.skip(late, "too late")
    assert (bench.delivery(signal_id).state, bench.delivery(signal_id).run_id) == (
        "started",
        run_id,
    )
    assert len(bench.runs("a")) == 1


# Overlap.


def test_signals_that_come_while_a_run_is_active_wait_by_default(bench: Bench) -> None:
    bench.signal("go", 1)
    [first] = bench.look()
    second = bench.signal("go", 2)
    assert bench.look() == []
    assert bench.became(second) == [("a", "queued")]
    assert bench.delivery(second).reason == f"run {first} has not ended yet"

    bench.end(first)
    [run_id] = bench.look()
    assert bench.delivery(second).run_id == run_id


def test_overlap_skip_passes_over_it_and_says_so(bench: Bench) -> None:
    bench.write({"a": {"signal": "go", "overlap": "skip"}})
    bench.signal("go")
    [first] = bench.look()
    skipped = [bench.signal("go") for _ in range(3)]
    assert bench.look() == []
    assert [bench.became(each) for each in skipped] == [[("a", "skipped")]] * 3
    assert bench.world.kinds().count("schedule.skipped") == 3
    bench.end(first)
    assert bench.look() == [], "what was skipped does not come back"


def test_overlap_replace_takes_the_place_of_the_run(bench: Bench) -> None:
    bench.write({"a": {"signal": "go", "overlap": "replace"}})
    bench.signal("go")
    [first] = bench.look()
    bench.signal("go")
    [second] = bench.look()
    assert bench.world.run(first).state == RunState.CANCELLED
    assert bench.world.run(second).state == RunState.QUEUED


def test_outside_its_hours_a_signal_waits_for_the_slot(bench: Bench) -> None:
    bench.write({"a": {"signal": "go", "windows": "02:00-03:00"}})
    now = bench.world.clock.now()
    bench.world.clock.advance(24 * HOUR_S - now % (24 * HOUR_S))  # midnight
    signal_id = bench.signal("go")
    assert bench.look() == []
    assert "the next slot is" in bench.delivery(signal_id).reason
    assert not bench.world.store.deliveries.has_to_deliver(), "nobody need stay up for it"
    bench.world.clock.advance(2 * HOUR_S + 1)
    assert len(bench.look()) == 1


# Whose signals.


def test_a_signal_about_one_source_starts_that_source_alone(bench: Bench) -> None:
    both = {"a": {"signal": "quality.zero_yield"}, "b": {"signal": "quality.zero_yield"}}
    bench.write({**both, "c": {"signal": "quality.zero_yield of a"}})
    signal_id = bench.signal("quality.zero_yield", source="a")
    bench.look()
    assert bench.became(signal_id) == [("a", "started"), ("c", "started")]


def test_a_signal_about_no_source_starts_whoever_waits(bench: Bench) -> None:
    bench.write({"a": {"signal": "budget.reset"}, "b": {"signal": "budget.reset"}})
    signal_id = bench.signal("budget.reset")
    bench.look()
    assert bench.became(signal_id) == [("a", "started"), ("b", "started")]


def test_a_run_for_a_signal_that_raises_it_again_is_not_followed_by_another(bench: Bench) -> None:
    bench.write({"a": {"signal": "quality.zero_yield"}})
    bench.signal("quality.zero_yield", source="a")
    [run_id] = bench.look()
    [job] = bench.world.claim()
    raised = [Raised("quality.zero_yield", b"null")]
    bench.world.turn("w", done(job, effects=Effects(signals=raised)))
    assert bench.world.run(run_id).is_ended

    assert bench.look() == []
    last = max(
        row.id for row in bench.world.store.signals.after() if row.name == "quality.zero_yield"
    )
    assert bench.became(last) == [("a", "skipped")]


# After other sources.


def test_a_source_runs_after_another_has_completed(bench: Bench) -> None:
    bench.write({"a": None, "b": {"after": "a"}})
    run_id = bench.run("a")
    [started] = bench.look()
    row = bench.world.run(started)
    assert row.source == "b"
    assert row.options.signal is not None
    assert row.options.signal.runs == {"a": run_id}


@pytest.mark.parametrize(
    ("state", "of_kind"),
    [
        ("failed", RunKind.FULL),
        ("cancelled", RunKind.FULL),
        ("completed", RunKind.BACKFILL),
        ("completed", RunKind.PROBE),
    ],
)
def test_only_a_run_that_ended_well_and_is_live_is_followed(
    bench: Bench, state: str, of_kind: RunKind
) -> None:
    bench.write({"a": None, "b": {"after": "a"}})
    if of_kind is RunKind.FULL:
        bench.run("a", state)
    else:
        data = {"kind": of_kind, "state": state}
        bench.world.store.signals.raise_(
            RUN_COMPLETED, data, actor="test", source_id=bench.world.source("a")
        )
    assert bench.look() == []


def test_chains_run_one_after_the_other(bench: Bench) -> None:
    bench.write({"a": None, "b": {"after": "a"}, "c": {"after": "b"}})
    bench.run("a")
    [b] = bench.look()
    assert bench.runs("c") == []
    bench.end(b)
    [c] = bench.look()
    assert bench.world.run(c).source == "c"


def test_fan_in_waits_for_all_of_them_each_time(bench: Bench) -> None:
    bench.write({"a": None, "b": None, "c": {"after": ["a", "b"]}})
    for _ in range(2):
        bench.run("a")
        assert bench.look() == []
        last_a = bench.run("a")
        assert bench.look() == [], "the same source twice is not both"
        last_b = bench.run("b")
        [started] = bench.look()
        facts = bench.world.run(started).options.signal
        assert facts is not None
        assert facts.runs == {"a": last_a, "b": last_b}
        bench.end(started)
        assert bench.look() == []


def test_fan_in_is_whole_whoever_delivers_which_part(bench: Bench) -> None:
    bench.write({"a": None, "b": None, "c": {"after": ["a", "b"]}})
    world, kind = bench.world, bench.world.kind
    for n in range(5):
        bench.run("a")
        bench.run("b")
        barrier = threading.Barrier(2)

        def deliver(barrier: threading.Barrier = barrier) -> None:
            with closing(kind.open(world.path, world.clock)) as store:
                deliverer = bench.deliverer(store)
                barrier.wait()
                deliverer.look()

        threads = [threading.Thread(target=deliver) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        runs = bench.runs("c")
        assert len(runs) == n + 1
        bench.end(runs[0].id)


def test_two_halves_delivered_in_two_transactions_make_one_whole(bench: Bench) -> None:
    """Each of two who deliver has seen one half only."""
    bench.write({"a": None, "b": None, "c": {"after": ["a", "b"]}})
    world, store = bench.world, bench.world.store
    bench.run("a")
    bench.run("b")
    place = (world.source("c"), "main")
    needs = {place: frozenset([world.source("a"), world.source("b")])}
    for signal in store.deliveries.open_signals():
        store.deliveries.deliver([signal.id], [], [(signal.id, place)], needs)
    assert len(store.deliveries.queued()) == 1
    assert len(bench.look()) == 1


# Keeping.


def test_a_schedule_that_is_gone_leaves_its_queue(bench: Bench) -> None:
    bench.signal("go")
    [first] = bench.look()
    waiting = bench.signal("go")
    bench.look()
    bench.write({"a": None})
    bench.end(first)
    assert bench.look() == []
    assert bench.became(waiting) == [("a", "skipped")]


def test_what_stands_in_queues_can_be_looked_at_with_what_it_waits_for(bench: Bench) -> None:
    bench.write({"a": {"signal": "go"}, "b": None, "c": {"after": ["b", "d"]}, "d": None})
    first, second, third = (bench.signal("go", key=str(number)) for number in range(3))
    [run_id] = bench.look()
    source_id = bench.world.source("a")

    rows, total = bench.world.store.deliveries.standing(source_id, limit=1)

    assert ([row.signal_id for row in rows], total) == ([second], 2)
    assert (rows[0].name, rows[0].about, rows[0].state) == ("go", None, "queued")
    assert rows[0].reason == f"run {run_id} has not ended yet"
    rows, _ = bench.world.store.deliveries.standing(source_id)
    assert [row.signal_id for row in rows] == [second, third]
    assert first not in {row.signal_id for row in rows}
    bench.run("b")
    bench.look()
    [waiting], _ = bench.world.store.deliveries.standing(bench.world.source("c"))
    assert (waiting.state, waiting.about, waiting.schedule) == ("waiting", "b", "main")
    assert bench.world.store.deliveries.standing(bench.world.source("d")) == ([], 0)


@pytest.mark.parametrize(
    ("after", "states", "runs"),
    [
        (["a"], ["started"], 1),  # all that it needs now is there
        (["b"], ["skipped"], 0),  # nobody waits for it any more
        (["a", "c"], ["waiting"], 0),
        (None, ["skipped"], 0),
    ],
)
def test_what_waits_goes_by_what_its_schedule_waits_for_now(
    bench: Bench, after: list[str] | None, states: list[str], runs: int
) -> None:
    others: dict[str, Any] = {"a": None, "b": None, "c": None}
    bench.write({**others, "z": {"after": ["a", "b"]}})
    bench.run("a")
    bench.look()
    bench.write({**others, "z": {"after": after} if after else None})
    bench.look()

    [ended] = [row for row in bench.world.store.signals.newest(RUN_COMPLETED) if row.source == "a"]
    rows = bench.world.store.deliveries.of_signals([ended.id])
    assert [row.state for row in rows if row.source == "z"] == states
    assert len(bench.runs("z")) == runs


def test_a_degraded_source_is_probed(bench: Bench) -> None:
    for _ in range(3):
        bench.run("a", "failed")
    assert bench.world.store.sources.health(bench.world.source("a")).degraded_at is not None
    bench.signal("go")
    [run_id] = bench.look()
    assert bench.world.run(run_id).kind == RunKind.PROBE


def test_what_is_old_is_dropped_and_numbers_are_not_given_out_again(bench: Bench) -> None:
    signal_id = bench.signal("go")
    [run_id] = bench.look()
    bench.end(run_id)
    bench.look()
    bench.world.clock.advance(100 * 24 * HOUR_S)
    while bench.world.store.upkeep.prune(Keep(None, 24 * HOUR_S, None, None)):
        pass
    assert bench.became(signal_id) == []
    fresh = bench.signal("go")
    assert fresh > signal_id
    assert len(bench.look()) == 1


def test_drifts_of_sources_are_found_among_other_signals_also_by_who_comes_later(
    world: World,
) -> None:
    def raised(run: int, *changes: dict[str, str]) -> None:
        data = {"collection": "product", "changes": changes, "of_run": run}
        world.store.signals.raise_("schema.drifted", data, actor="w", source_id=world.source())

    raised(1, {"field": "price", "what": "type", "before": "number", "now": "string"})
    world.store.signals.raise_("go", {}, actor="ann")
    watching = RecentSignals(world.store)
    watching.read()
    [first] = watching.drifts()["acme.com"]
    assert (first.collection, first.new) == ("product", ())
    assert first.changed == ("price was number and is string",)
    watching.read()
    assert len(watching.drifts()["acme.com"]) == 1

    raised(2, {"field": "color", "what": "new", "now": "string"})
    given_up = {"dag": "shop", "run": "monday", "task": "extract", "error": "no price"}
    world.store.signals.raise_(
        "airflow.failed", given_up, actor="airflow", source_id=world.source()
    )
    world.store.signals.raise_("airflow.failed", given_up, actor="airflow")
    for signals in (watching, RecentSignals(world.store)):
        signals.read()
        found = signals.drifts()["acme.com"]
        assert [each.new for each in found] == [(), ("color is new (string)",)]
        [(source, [task])] = signals.given_up().items()
        assert (source, task.engine, task.graph, task.run, task.task) == (
            "acme.com", "airflow", "shop", "monday", "extract",
        )  # fmt: skip
