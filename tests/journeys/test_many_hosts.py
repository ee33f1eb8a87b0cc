"""Several Penstocks on one database, as on several hosts: work is shared, and a lost host's goes on."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from penstock.engine.leader.leadership import TERM_S
from penstock.jobs.job import JobState
from penstock.store.workers import LEASE_S
from tests.clocked import in_time
from tests.journeys.holding import (
    HOLDING,
    forget_held,
    holding_source,
    let_go,
    wait_until_held,
)
from tests.journeys.rig import CLOCK, Rig, kill, until
from tests.journeys.test_together import TICKING
from tests.postgres.server import Server

LOST_HOST_S = 20.0
EVERY_S = 2.0
TICKS = {"pipeline": "steps:ticks", "schedule": {"every": f"{EVERY_S:g}s"}}


def pages(count: int) -> set[str]:
    return {str(number) for number in range(count)}


def stop(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        assert process.wait(timeout=120) == 0


def lose(rig: Rig, process: subprocess.Popen[str]) -> None:
    """A host is gone: its supervisor and its workers, without a word."""
    for pid in [process.pid, *rig.worker_pids(process)]:
        kill(pid)
    process.wait()


def assert_no_tick_is_doubled(rig: Rig) -> None:
    """Each run was started by one tick, and each tick is of a moment of its own.

    By what the journal says, and not by the time between two runs: who takes over starts what was missed at
    once, and the tick after it is due when it is due.
    """
    [schedule] = rig.store.schedules.all()
    ticks = rig.store.schedules.ticks(schedule.source_id, schedule.name, 1000)
    fired = Counter(tick.run_id for tick in ticks if tick.outcome == "fired")
    assert fired == Counter(run.id for run in rig.store.runs.newest("clock", limit=1000))
    due = sorted(tick.due_at for tick in ticks)
    assert all(later - earlier > EVERY_S / 2 for earlier, later in itertools.pairwise(due))


def pids_by_host(rig: Rig, *processes: subprocess.Popen[str]) -> list[int]:
    def found() -> list[int]:
        pids = [rig.worker_pid(process) for process in processes]
        return [pid for pid in pids if pid is not None]

    def all_work() -> bool:
        return len(found()) == len(processes)

    until(all_work, "all hosts work")
    return found()


def test_two_hosts_share_the_work_and_one_of_them_leads(tmp_path: Path, database: str) -> None:
    source = {**holding_source(12), "limits": {"concurrency": 12}}
    with Rig(tmp_path, {"shop": source}, HOLDING, {"slots": 6}, store=database) as rig:
        one, two = rig.start("up"), rig.start("up")
        pids = pids_by_host(rig, one, two)
        [run_id] = rig.enqueue("shop")
        wait_until_held(rig, 12)
        rows = {row.pid: row for row in rig.store.workers.all()}
        assert {rows[pid].running for pid in pids} == {6}
        assert {rows[pid].slots for pid in pids} == {6}
        let_go(rig)
        until(lambda: rig.run(run_id).is_ended, "the run has ended")
        assert rig.run(run_id).state == "completed"
        assert {row.data["pid"] for row in rig.store.records.of("page")} == set(pids)
        [leader] = rig.store.leaders.all()
        assert leader.term == 1
        assert any(f"/{process.pid}/" in leader.holder for process in (one, two))
        stop(one, two)
        rig.assert_sound()
        rig.assert_records(pages(12))


def test_jobs_of_a_lost_host_run_again_within_twenty_seconds(tmp_path: Path, database: str) -> None:
    with Rig(tmp_path, {"shop": holding_source(4)}, HOLDING, store=database) as rig:
        lost = rig.start("up")
        pids_by_host(rig, lost)
        [run_id] = rig.enqueue("shop")
        wait_until_held(rig, 4)
        left = rig.start("up")
        pids_by_host(rig, left)
        # So that the other has watched for a whole lease, as a host that was there all the time has.
        watched_at = CLOCK.monotonic() + LEASE_S
        until(lambda: CLOCK.monotonic() > watched_at, "it has watched for a while")
        forget_held(rig)

        lost_at = rig.store.now()
        lose(rig, lost)
        wait_until_held(rig, 4)
        let_go(rig)
        until(lambda: rig.run(run_id).is_ended, "the run has ended")

        again = [event for event in rig.events("job.started") if event.attempt == 2]
        assert len(again) == 4
        took_s = max(event.at for event in again) - lost_at
        print(f"its jobs ran again after {took_s:.1f} s")
        in_time(took_s, LOST_HOST_S)
        stop(left)
        rig.assert_sound()
        rig.assert_records(pages(4))


def test_host_that_is_drained_leaves_its_work_to_the_other(tmp_path: Path, database: str) -> None:
    with Rig(tmp_path, {"shop": holding_source(4)}, HOLDING, {"grace": "1s"}, database) as rig:
        first = rig.start("up")
        pids_by_host(rig, first)
        [run_id] = rig.enqueue("shop")
        wait_until_held(rig, 4)
        other = rig.start("worker")
        [pid] = pids_by_host(rig, other)
        forget_held(rig)
        stop(first)
        wait_until_held(rig, 4)
        let_go(rig)
        until(lambda: rig.run(run_id).is_ended, "the run has ended")
        assert {row.data["pid"] for row in rig.store.records.of("page")} == {pid}
        assert [job for job in rig.jobs() if job.tries or job.deaths] == []
        stop(other)
        rig.assert_sound()


def test_worker_and_scheduler_apart_do_what_up_does(tmp_path: Path, database: str) -> None:
    with Rig(tmp_path, {"clock": TICKS}, TICKING, store=database) as rig:
        worker, scheduler = rig.start("worker", "--workers", "2"), rig.start("scheduler")
        until(
            lambda: sum(run.is_ended for run in rig.store.runs.newest()) >= 3, "it ran three times"
        )
        assert len(rig.worker_pids(worker)) == 2
        assert rig.worker_pids(scheduler) == []
        [leader] = rig.store.leaders.all()
        assert f"/{scheduler.pid}/" in leader.holder
        stop(worker, scheduler)
        rig.assert_records({str(run.id) for run in rig.store.runs.newest() if run.is_ended}, "tick")


def test_when_the_scheduler_that_leads_is_lost_another_goes_on_and_no_tick_is_doubled(
    tmp_path: Path, database: str
) -> None:
    with Rig(tmp_path, {"clock": TICKS}, TICKING, store=database) as rig:
        schedulers = [rig.start("scheduler") for _ in range(3)]
        worker = rig.start("worker")
        until(lambda: len(rig.store.runs.newest()) >= 2, "it ran twice")
        [first] = rig.store.leaders.all()
        [leader] = [each for each in schedulers if f"/{each.pid}/" in first.holder]
        lost_at = rig.store.now()
        lose(rig, leader)
        known = {run.id for run in rig.store.runs.newest()}
        new = until(
            lambda: [run for run in rig.store.runs.newest() if run.id not in known],
            "another one fires",
        )
        took_s = min(run.created_at for run in new) - lost_at
        print(f"another one fired after {took_s:.1f} s")
        in_time(took_s, TERM_S + 5)
        [second] = rig.store.leaders.all()
        assert second.term > first.term
        stop(worker, *(each for each in schedulers if each is not leader))
        assert_no_tick_is_doubled(rig)


def test_run_in_the_foreground_is_one_more_host(tmp_path: Path, database: str) -> None:
    with Rig(tmp_path, {"shop": holding_source(3)}, HOLDING, store=database) as rig:
        let_go(rig)
        up = rig.start("up")
        pids_by_host(rig, up)
        done = rig.penstock("run", "shop", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["state"] == "completed"
        stop(up)
        rig.assert_sound()
        rig.assert_records(pages(3))


# The database.


def test_restart_of_the_database_in_the_middle_of_a_job_spends_no_attempt(
    tmp_path: Path, own_postgres: Server
) -> None:
    url = own_postgres.create_database("journey")
    with Rig(tmp_path, {"shop": holding_source(4)}, HOLDING, store=url) as rig:
        up = rig.start("up")
        pids_by_host(rig, up)
        [run_id] = rig.enqueue("shop")
        wait_until_held(rig, 4)
        away_at = CLOCK.monotonic()
        own_postgres.restart_immediate()
        # A lease that ends before it is back is another promise: that of the outage below.
        in_time(CLOCK.monotonic() - away_at, LEASE_S / 3)
        let_go(rig)
        rig.store.reopen()
        until(lambda: rig.run(run_id).is_ended, "the run has ended")
        assert {job.attempt for job in rig.jobs(stage="hold")} == {1}
        stop(up)
        rig.assert_sound()
        rig.assert_records(pages(4))


def test_outage_longer_than_the_lease_makes_no_job_look_like_poison(
    tmp_path: Path, own_postgres: Server
) -> None:
    url = own_postgres.create_database("journey")
    with Rig(tmp_path, {"shop": holding_source(4)}, HOLDING, store=url) as rig:
        hosts = rig.start("up"), rig.start("worker")
        pids = pids_by_host(rig, *hosts)
        [run_id] = rig.enqueue("shop")
        wait_until_held(rig, 4)
        forget_held(rig)
        away_at = CLOCK.monotonic()
        own_postgres.stop(signal.SIGINT)
        over_at = CLOCK.monotonic() + LEASE_S + 5
        until(lambda: CLOCK.monotonic() > over_at, "the leases have run out")
        assert [process.poll() for process in hosts] == [None, None]
        own_postgres.start_again()
        wait_until_held(rig, 4)
        minutes = 1 + (CLOCK.monotonic() - away_at) // 60
        let_go(rig)
        rig.store.reopen()
        until(lambda: rig.run(run_id).is_ended, "the run has ended")
        assert [job for job in rig.jobs() if job.tries or job.deaths] == []
        assert rig.events("worker.reaped") == []
        assert {row.data["pid"] for row in rig.store.records.of("page")}.isdisjoint(pids)
        for process in hosts:
            # Once a minute by the supervisor, and once by its worker.
            assert rig.output(process).count("can't reach the database") <= 2 * minutes
            assert "Traceback" not in rig.output(process)
        stop(*hosts)
        rig.assert_sound()
        rig.assert_records(pages(4))


def test_up_waits_for_its_database_and_run_does_not(tmp_path: Path, own_postgres: Server) -> None:
    url = own_postgres.create_database("journey")
    with Rig(tmp_path, {"shop": holding_source(2)}, HOLDING, store=url) as rig:
        let_go(rig)
        own_postgres.stop()
        refused = rig.penstock("run", "shop")
        assert refused.returncode == 5
        assert "can't reach the database" in refused.stderr
        impatient, up = rig.start("scheduler"), rig.start("up", "--until-idle")
        until(lambda: "waiting for it" in rig.output(impatient), "the scheduler waits")
        until(lambda: "waiting for it" in rig.output(up), "the other one waits too")
        stop(impatient)
        own_postgres.start_again()
        assert up.wait(timeout=120) == 0, rig.output(up)
        assert rig.output(up).count("waiting for it") == 1


def test_stopping_while_the_database_is_away_takes_no_longer_than_the_grace(
    tmp_path: Path, own_postgres: Server
) -> None:
    url = own_postgres.create_database("journey")
    with Rig(tmp_path, {"shop": holding_source(2)}, HOLDING, {"grace": "1s"}, url) as rig:
        up = rig.start("up")
        pids_by_host(rig, up)
        rig.enqueue("shop")
        wait_until_held(rig, 2)
        own_postgres.stop(signal.SIGINT)
        stop(up)
        assert "could not be signed off" in rig.output(up)
        own_postgres.start_again()
        rig.store.reopen()
        assert len(rig.jobs(JobState.RUNNING)) == 2


@pytest.mark.parametrize("command", ["worker", "scheduler"])
def test_on_sqlite_the_halves_of_up_are_refused(tmp_path: Path, command: str) -> None:
    with Rig(tmp_path, {"shop": holding_source(1)}, HOLDING) as rig:
        done = rig.penstock(command)
        assert done.returncode == 7
        assert "on a SQLite file, one Penstock does all of the work" in done.stderr
        assert "penstock up" in done.stderr
        many = rig.penstock("up", "--workers", "2")
        assert many.returncode == 7
        assert "would wait for each other" in many.stderr
