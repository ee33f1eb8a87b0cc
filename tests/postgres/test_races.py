"""Many at once on one Postgres: nobody waits in a circle, nothing is lost, nothing is doubled."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec
import pytest

from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.jobs.effects import Effects, Save
from penstock.jobs.job import Claimed, JobState, NewJob
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.store.jobs import JobFilter
from penstock.store.postgres.store import PostgresStore
from tests.clocked import in_time
from tests.postgres.crowd import (
    CLOCK,
    IDLE_S,
    Idlers,
    Seen,
    a_line,
    ask,
    finish,
    in_threads,
    let_loose,
    letting_go,
    watch,
)
from tests.postgres.workspace import until

WIDE = LaneLimits(concurrency=10_000, candidates=10_000)
ENDS = (
    "job.succeeded", "job.skipped", "job.quarantined", "job.cancelled", "job.released",
    "job.retry_scheduled", "job.throttled", "job.snoozed",
)  # fmt: skip


def deadlocks(url: str) -> int:
    """Counted by the server; its sessions have told by the time that they are closed."""
    [(count,)] = ask(
        url, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    return int(count)


# Everything at once.


@pytest.mark.parametrize(
    ("clients", "acts"),
    [
        pytest.param(8, 120, id="short"),
        pytest.param(16, 4000, marks=[pytest.mark.timeout(3600), pytest.mark.torture], id="long"),
    ],
)
def test_crowd_leaves_a_sound_store_and_every_effect_once(
    database: str, clients: int, acts: int
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    PostgresStore(database, CLOCK).close()
    watch(database)
    with Idlers(database) as idlers:
        seen = let_loose(database, clients, acts, seed)
        finish(database)
    print(f"{sum(seen.acts.values())} acts: {seen.acts}; idle for {idlers.worst_s:.2f} s at most")
    assert seen.errors == []
    assert deadlocks(database) == 0
    in_time(idlers.worst_s, IDLE_S)
    assert ask(database, "SELECT * FROM penstock.excess") == []
    assert_whole(database, seen)


def assert_whole(url: str, seen: Seen) -> None:
    with closing(PostgresStore(url, CLOCK)) as store:
        assert store.upkeep.check() == []
        assert [run for run in store.runs.newest(limit=10_000) if not run.is_ended] == []
        assert_no_job_is_lost(url, seen)
        assert_each_attempt_ended_once(store, seen)
        assert_records_are_counted(url, store)
    # Not those that a run raises itself when it ends.
    found = ask(url, "SELECT data FROM penstock.signal WHERE name = 'gap'")
    raised = [data.strip('"') for (data,) in found]
    assert sorted(raised) == sorted(signal.strip('"') for signal in seen.signals)


def assert_no_job_is_lost(url: str, seen: Seen) -> None:
    closed = ("succeeded", "skipped", "quarantined", "cancelled")
    assert ask(url, f"SELECT id FROM penstock.job WHERE state NOT IN {closed}") == []
    added = ask(url, "SELECT id, run_id, stage FROM penstock.added")
    assert seen.enqueued <= {job_id for job_id, _, _ in added}
    counted = ask(
        url,
        "SELECT run_id, stage, succeeded + skipped + quarantined + cancelled FROM penstock.stage_count",
    )
    in_counters = {(run, stage): n for run, stage, n in counted if n}
    assert in_counters == Counter((run, stage) for _, run, stage in added)


def assert_each_attempt_ended_once(store: PostgresStore, seen: Seen) -> None:
    """As the journal has it, and at least those whose end was confirmed."""
    events = store.journal.events(after_id=0, limit=10_000_000)
    ended = Counter((e.job_id, e.attempt) for e in events if e.kind in ENDS and e.attempt)
    started = Counter((e.job_id, e.attempt) for e in events if e.kind == "job.started")
    assert [fence for fence, times in started.items() if times > 1] == []
    # A job that waits may be cancelled or sent back by a person, which its last attempt did not do.
    assert seen.settled <= set(ended)
    assert set(ended) >= set(started)


def assert_records_are_counted(url: str, store: PostgresStore) -> None:
    runs = store.runs.newest(limit=10_000)
    [(records, changes)] = ask(
        url, "SELECT count(*), coalesce(sum(version - 1), 0) FROM penstock.record"
    )
    assert sum(run.inserted for run in runs) == records
    assert sum(run.updated for run in runs) == changes
    gaps = ask(
        url,
        "SELECT r.id FROM penstock.record AS r LEFT JOIN penstock.record_version AS v ON v.record_id = r.id"
        " GROUP BY r.id, r.version HAVING count(v.version) <> r.version - 1",
    )
    assert gaps == []
    assert sum(count for _, count in store.records.collections()) == records


# Two at the same moment, again and again.


def two_workers(
    url: str, plan: Plan, rounds: int, settle: Callable[[PostgresStore, int, Any], None]
) -> list[int]:
    """Two workers that own one job each of every run, and settle them in the same moment; the runs."""
    with closing(PostgresStore(url, CLOCK)) as store:
        [source_id] = store.sources.ensure(["shop"]).values()
        for name in ("left", "right"):
            store.workers.register(name, "here", 1, "test")
        runs = [
            store.runs.start(source_id, RunKind.FULL, plan, "v1", key=f"{n}", actor="test")[0]
            for n in range(rounds)
        ]
        claimed = store.turn("left", [], Capacity(2 * rounds), {source_id: WIDE}).claimed
    ask(url, "UPDATE penstock.job SET worker = 'right' WHERE stage = 'right'")
    mine = {(job.run_id, job.stage): job for job in claimed}
    line = a_line(2)

    def work(name: str) -> None:
        with closing(PostgresStore(url, CLOCK)) as store, letting_go(line):
            for run_id in runs:
                line.wait()
                settle(store, run_id, mine[run_id, name])

    in_threads([lambda: work("left"), lambda: work("right")])
    return runs


LEFT_AND_RIGHT = (PlannedStage("left", "run"), PlannedStage("right", "run"))


@pytest.mark.parametrize(
    "rounds", [250, pytest.param(5000, marks=[pytest.mark.timeout(3600), pytest.mark.torture])]
)
def test_run_ends_when_its_last_two_jobs_are_settled_in_the_same_moment(
    database: str, rounds: int
) -> None:
    def settle(store: PostgresStore, run_id: int, job: Any) -> None:
        end = Settlement(job.id, job.attempt, JobState.SUCCEEDED)
        assert store.turn(job.stage, [end], Capacity(0), {}).settled == [job.id]

    runs = two_workers(database, Plan(LEFT_AND_RIGHT), rounds, settle)

    with closing(PostgresStore(database, CLOCK)) as store:
        assert {run.state for run in store.runs.newest(limit=rounds)} == {"completed"}
        ended = Counter(
            e.run_id
            for e in store.journal.events(after_id=0, limit=1_000_000)
            if e.kind == "run.completed"
        )
        assert ended == dict.fromkeys(runs, 1)
        assert store.upkeep.check() == []
    assert deadlocks(database) == 0


def test_gather_step_starts_once_when_the_last_two_before_it_are_settled_in_the_same_moment(
    database: str,
) -> None:
    report = PlannedStage("report", "run", ("left", "right"), is_gather=True)

    def settle(store: PostgresStore, run_id: int, job: Any) -> None:
        end = Settlement(job.id, job.attempt, JobState.SUCCEEDED)
        store.turn(job.stage, [end], Capacity(0), {})

    runs = two_workers(database, Plan((*LEFT_AND_RIGHT, report)), 200, settle)

    gathers = ask(database, "SELECT run_id FROM penstock.job WHERE stage = 'report'")
    assert sorted(run_id for (run_id,) in gathers) == runs
    assert deadlocks(database) == 0


def test_record_that_two_workers_save_first_in_the_same_moment_has_both_versions(
    database: str,
) -> None:
    """Each brings a field of its own to keys that are new, in another order than the other."""
    rounds, keys = 300, 40

    def settle(store: PostgresStore, run_id: int, job: Any) -> None:
        order = range(keys) if job.stage == "left" else range(keys - 1, -1, -1)
        data = msgspec.json.encode({job.stage: run_id})
        saves = [Save("product", f"{run_id}/{n}", data, None, "merge") for n in order]
        end = Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=Effects(saves=saves))
        assert store.turn(job.stage, [end], Capacity(0), {}).settled == [job.id]

    runs = two_workers(database, Plan(LEFT_AND_RIGHT), rounds, settle)

    with closing(PostgresStore(database, CLOCK)) as store:
        records = store.records.of("product", limit=rounds * keys)
        assert len(records) == rounds * keys
        for record in records:
            run_id = int(record.key.partition("/")[0])
            assert (record.version, record.data) == (2, {"left": run_id, "right": run_id})
        assert store.records.collections() == [("product", rounds * keys)]
        assert store.upkeep.check() == []
        seen = store.runs.newest(limit=rounds)
        assert {(run.inserted, run.updated) for run in seen} == {(keys, keys)}, runs
    assert deadlocks(database) == 0


def test_run_that_eight_start_with_one_key_is_one_run(database: str) -> None:
    with closing(PostgresStore(database, CLOCK)) as store:
        [source_id] = store.sources.ensure(["shop"]).values()
    answers: list[tuple[str, int, bool]] = []
    noting = threading.Lock()
    line = a_line(8)

    def start() -> None:
        with closing(PostgresStore(database, CLOCK)) as store, letting_go(line):
            for number in range(40):
                key = f"key-{number}"
                line.wait()
                told = store.runs.start(
                    source_id, RunKind.FULL, Plan(LEFT_AND_RIGHT), "v1", key=key, actor="test"
                )
                with noting:
                    answers.append((key, *told))

    in_threads([start] * 8)
    assert len({(key, run_id) for key, run_id, _ in answers}) == 40
    assert sum(is_new for _, _, is_new in answers) == 40
    [(jobs,)] = ask(database, "SELECT count(*) FROM penstock.job")
    assert jobs == 80
    assert deadlocks(database) == 0


# In between: what another does at the worst moment.


def before(store: PostgresStore, query: str, act: Callable[[], object]) -> None:
    """Have this happen just before the store's next query of this name."""
    ask_database = store._db._execute

    def execute(name: str, values: dict[str, Any]) -> Any:
        if name == query:
            store._db._execute = ask_database  # type: ignore[method-assign]
            act()
        return ask_database(name, values)

    store._db._execute = execute  # type: ignore[method-assign]


@contextmanager
def beginning(url: str, act: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Begin this in a thread: it has ended, or waits for a lock, before the one who began it goes on."""
    thread = threading.Thread(target=act)
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

    def begin() -> None:
        thread.start()
        until("it is done or waits", lambda: not thread.is_alive() or bool(ask(url, waiting)))

    yield begin
    thread.join()


def a_run(store: PostgresStore, key: str = "one") -> int:
    [source_id] = store.sources.ensure(["shop"]).values()
    plan = Plan(LEFT_AND_RIGHT)
    return store.runs.start(source_id, RunKind.FULL, plan, "v1", key=key, actor="test")[0]


def test_worker_that_is_buried_between_the_halves_of_its_turn_is_given_nothing(
    database: str,
) -> None:
    with (
        closing(PostgresStore(database, CLOCK)) as store,
        closing(PostgresStore(database, CLOCK)) as other,
    ):
        a_run(store)
        store.workers.register("w", "here", 1, "test")
        [job] = store.turn("w", [], Capacity(1), {}).claimed
        a_run(store, "two")
        let_go = store._db.let_go

        def buried_meanwhile() -> float:
            now = let_go()
            other.workers.bury("w", "in the middle of its turn")
            return now

        store._db.let_go = buried_meanwhile  # type: ignore[method-assign]
        turn = store.turn(
            "w", [Settlement(job.id, job.attempt, JobState.SUCCEEDED)], Capacity(10), {}
        )

        assert (turn.settled, turn.is_buried, turn.claimed) == ([job.id], True, [])
        assert other.upkeep.check() == []


def test_job_that_is_sent_back_while_its_run_is_cancelled_is_not_left_behind(
    database: str,
) -> None:
    with (
        closing(PostgresStore(database, CLOCK)) as store,
        closing(PostgresStore(database, CLOCK)) as other,
    ):
        run_id = a_run(store)
        store.workers.register("w", "here", 1, "test")
        [job, _] = store.turn("w", [], Capacity(10), {}).claimed
        bad = Settlement(job.id, job.attempt, JobState.QUARANTINED, reason="data", error="bad")
        store.turn("w", [bad], Capacity(0), {})

        def cancel() -> None:
            other.runs.cancel(run_id, "test", "at the worst moment")
            while other.runs.sweep_cancelled():
                pass

        with beginning(database, cancel) as begin:
            before(store, "retry_quarantined_of_run", begin)
            store.runs.retry_failed(run_id, "test", "again")
        while store.runs.sweep_cancelled():
            pass
        assert [row.state for row in store.jobs.find(JobFilter(states=OPEN_JOB_STATES))] == []


def test_two_who_claim_from_two_runs_of_one_source_keep_its_limit(database: str) -> None:
    """Each sees a free place, and each takes another run's job: what they lock must be the same."""
    limits = LaneLimits(concurrency=1)
    with (
        closing(PostgresStore(database, CLOCK)) as store,
        closing(PostgresStore(database, CLOCK)) as other,
    ):
        a_run(store, "slow")
        for name in ("w", "other"):
            store.workers.register(name, "here", 1, "test")
        watch(database, limits)
        [source_id] = store.sources.ensure(["shop"]).values()
        claimed: list[Claimed] = []

        def claim_from_a_more_urgent_run() -> None:
            run_id = a_run(other, "quick")
            other.jobs.enqueue(run_id, [NewJob("left", "at once", b"null", -1000)])
            claimed.extend(other.turn("other", [], Capacity(1), {source_id: limits}).claimed)

        with beginning(database, claim_from_a_more_urgent_run) as begin:
            before(store, "pick", begin)
            claimed.extend(store.turn("w", [], Capacity(1), {source_id: limits}).claimed)

        assert len(claimed) == 1
        assert ask(database, "SELECT * FROM penstock.excess") == []
