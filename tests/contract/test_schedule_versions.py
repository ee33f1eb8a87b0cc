"""Schedules as data: versions, plans of ten thousand, and how long their ticks are kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import psycopg

from penstock.engine.leader.scheduler import Scheduler
from penstock.jobs.run import RunKind
from penstock.project import Project
from penstock.store.queries import queries
from penstock.store.schedule_rows import Planned
from penstock.store.upkeep import Keep
from tests.contract.scenes import StoreKind, World
from tests.contract.schedule_bench import HOUR_S, Bench
from tests.tapped import Tapped

# Versions.


def test_unchanged_schedule_keeps_its_next_tick_and_a_changed_one_is_planned_anew(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    due_at = b.row().next_due_at
    b.world.clock.advance(600)
    b.write({"acme.com": {"schedule": {"every": "60m"}}})
    assert (b.changed, b.row().next_due_at, b.row().version) == (0, due_at, 1)

    b.write({"acme.com": {"schedule": {"every": "2h"}}})

    assert (b.changed, b.row().version) == (1, 2)
    assert b.row().next_due_at == b.world.clock.now() + 2 * HOUR_S
    versions = b.world.store.schedules.versions(b.world.source())
    assert [(each.version, each.words) for each in versions] == [
        (1, "every hour"),
        (2, "every 2 hours"),
    ]


def test_ticks_that_were_due_by_a_definition_that_is_replaced_are_not_forgotten(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    b.world.clock.advance(3 * HOUR_S + 60)
    b.write({"acme.com": {"schedule": {"every": "2h"}}})

    assert b.outcomes() == {"missed": 3}
    assert {tick.reason for tick in b.ticks()} == {"the schedule was changed"}
    assert {tick.version for tick in b.ticks()} == {1}
    assert "schedule.missed" in b.world.kinds()


def test_what_was_due_while_nobody_was_there_is_still_due_after_a_restart(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    b.world.clock.advance(3 * HOUR_S + 60)
    b.write({"acme.com": {"schedule": {"every": "1h"}}})
    assert b.ticks() == []
    b.tick()
    assert b.outcomes() == {"missed": 2, "fired": 1}


def test_scheduler_with_another_configuration_leaves_a_tick_to_others(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    former = b.scheduler
    b.write({"acme.com": {"schedule": {"every": "2h", "kind": "incremental"}}})
    b.world.clock.advance(2 * HOUR_S)
    former.tick()
    assert b.runs() == []
    b.tick()
    assert [run.kind for run in b.runs()] == [RunKind.INCREMENTAL]


def test_history_says_which_version_fired(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    b.go(3 * HOUR_S, 600)
    b.write({"acme.com": {"schedule": {"every": "2h"}}})
    b.go(4 * HOUR_S, 600)

    assert [tick.version for tick in b.ticks()] == [1, 1, 1, 2, 2]
    counts = b.world.store.schedules.tick_counts(b.world.source())
    assert [(each.version, each.outcome, each.ticks) for each in counts] == [
        (1, "fired", 3),
        (2, "fired", 2),
    ]


def test_schedule_that_is_taken_out_is_due_no_more_and_comes_back_as_the_next_version(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    b.write({"acme.com": {}})
    assert b.world.store.schedules.all() == []
    assert b.tick(HOUR_S) is None
    assert b.runs() == []
    assert b.world.store.sources.all()[0].next_run_at is None

    b.write({"acme.com": {"schedule": {"every": "1h"}}})
    assert b.row().version == 3
    removed = b.world.store.schedules.versions(b.world.source())[1]
    assert (removed.definition, removed.words) == ("", "removed")


def test_planning_what_is_planned_writes_nothing(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    before = b.world.dump()
    assert b.scheduler.plan() == 0
    assert b.world.dump() == before


# Ten thousand of them.


def test_idle_look_asks_one_question_and_a_look_reads_only_what_is_due(
    world: World, kind: StoreKind, tmp_path: Path
) -> None:
    keys = [f"source{n}" for n in range(100)]
    ids, now = world.store.sources.ensure(keys), world.clock.now()
    count = 10_000
    world.store.schedules.plan(
        [
            Planned(ids[keys[n % 100]], f"s{n:05}", "{}", "every day", "every", now + 10 + n)
            for n in range(count)
        ]
    )
    asked: list[str] = []

    view: Any = Tapped(world.store, asked.append)
    (tmp_path / "penstock.yaml").write_text("project: bare\nsources: {}\n")
    project = Project.open(tmp_path)
    scheduler = Scheduler(project, view)
    assert scheduler.tick() == now + 10
    assert asked == ["now", "schedules.next_look_at"]

    world.clock.advance(12)
    assert [row.name for row in world.store.schedules.due(world.clock.now())] == [
        "s00000", "s00001", "s00002",
    ]  # fmt: skip
    plans = _plans(world, kind, "due_schedules", "next_look_at")
    assert all("schedule_due" in plan for plan in plans), plans
    bound = "Index Cond: (look_at <=" if kind.is_shared else "schedule_due (look_at<?)"
    assert bound in plans[0], "from where what is due begins to where it ends"


def _plans(world: World, kind: StoreKind, *names: str) -> list[str]:
    if not kind.is_shared:
        known = queries("penstock.store.sqlite")
        with closing(apsw.Connection(str(world.path))) as connection:
            return [
                " ".join(
                    str(row[3])
                    for row in connection.execute(
                        f"EXPLAIN QUERY PLAN {known[name]}", {"now": 1.0, "limit": 10}
                    )
                )
                for name in names
            ]
    known = queries("penstock.store.postgres")
    factory = psycopg.ClientCursor[tuple[Any, ...]]
    with psycopg.connect(str(world.path), autocommit=True, cursor_factory=factory) as connection:
        return [
            " ".join(
                row[0]
                for row in connection.execute(
                    f"EXPLAIN {known[name]}".encode(), {"now": 1.0, "limit": 10}
                )
            )
            for name in names
        ]


# Retention.


def test_ticks_are_kept_as_long_as_events(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    b.go(10 * HOUR_S, HOUR_S)
    keep = Keep(None, 5.5 * HOUR_S, None, None)
    while b.world.store.upkeep.prune(keep):
        pass
    assert len(b.ticks()) == 6
