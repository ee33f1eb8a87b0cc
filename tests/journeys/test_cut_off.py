"""A host whose way to the database fails: silent, cut off for long, or only slow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.engine.leader.leadership import TERM_S
from penstock.engine.supervisor.supervisor_loop import GIVE_UP_S
from penstock.store.postgres.connection import CONNECT_S
from penstock.store.workers import LEASE_S
from tests.clocked import in_time
from tests.journeys.holding import HOLDING, forget_held, holding_source, let_go, wait_until_held
from tests.journeys.rig import CLOCK, Rig, until
from tests.journeys.test_many_hosts import (
    LOST_HOST_S,
    TICKS,
    assert_no_tick_is_doubled,
    pages,
    pids_by_host,
    stop,
)
from tests.journeys.test_together import TICKING
from tests.postgres.proxy import Fault, Proxy

# Each held page leaves a mark every so often, so that it can be seen until when its attempt went on.
MARKING = HOLDING.replace(
    "        await asyncio.sleep(0.01)\n",
    "        (here / f'going-{os.getpid()}').touch()\n        await asyncio.sleep(0.01)\n",
)

# What a supervisor asks over and over, each by what its statement has and no other.
LOOKS = (
    pytest.param("'by_release' IS NOT NULL", id="runs-by-releases"),
    pytest.param("UPDATE .*worker SET lease_", id="beat", marks=pytest.mark.torture),
    pytest.param("lease_expires_at <= ", id="expired", marks=pytest.mark.torture),
    pytest.param("SELECT release_id FROM ", id="release", marks=pytest.mark.torture),
)


def through(rig: Rig, url: str) -> list[str]:
    """The words that send a command by another way to the same database."""
    (rig.folder / "penstock.far.yaml").write_text(json.dumps({"store": url}))
    return ["--env", "far"]


def pass_time(seconds: float, why: str) -> None:
    over_at = CLOCK.monotonic() + seconds
    until(lambda: CLOCK.monotonic() > over_at, why, within_s=seconds + 5)


@pytest.mark.parametrize("asked", LOOKS)
def test_connections_that_fall_silent_cost_no_attempt(
    tmp_path: Path, database: str, proxy: Proxy, asked: str
) -> None:
    with Rig(tmp_path, {"shop": holding_source(4)}, HOLDING, store=database) as rig:
        up = rig.start("up", *through(rig, proxy.through(database)))
        pids_by_host(rig, up)
        [run_id] = rig.enqueue("shop")
        wait_until_held(rig, 4)
        # The beats wait for the same connection, whatever it was asked when it fell silent.
        proxy.fail(Fault.HANG_BEFORE, at=asked).wait()
        proxy.black_hole(existing=True, new=False)
        pass_time(LEASE_S, "a lease has passed")
        let_go(rig)
        until(lambda: rig.run(run_id).is_ended, "the run has ended", within_s=60)
        assert {job.attempt for job in rig.jobs(stage="hold")} == {1}
        assert rig.events("worker.reaped") == []
        stop(up)
        rig.assert_sound()
        rig.assert_records(pages(4))


def test_host_that_is_cut_off_stops_before_another_takes_over(
    tmp_path: Path, database: str, proxy: Proxy
) -> None:
    with Rig(tmp_path, {"shop": holding_source(4)}, MARKING, store=database) as rig:
        far = rig.start("up", *through(rig, proxy.through(database)))
        [lost_pid] = pids_by_host(rig, far)
        [run_id] = rig.enqueue("shop")
        wait_until_held(rig, 4)
        near = rig.start("up")
        [near_pid] = pids_by_host(rig, near)
        pass_time(LEASE_S, "the other has watched for a lease")
        forget_held(rig)

        cut_at = rig.store.now()
        proxy.freeze()
        wait_until_held(rig, 4)
        started = [event for event in rig.events("job.started") if event.attempt == 2]
        in_time(max(event.at for event in started) - cut_at, LOST_HOST_S)
        # One machine, so one clock: the marks are of the same time as the journal.
        last_mark = (rig.folder / f"going-{lost_pid}").stat().st_mtime
        began_at = min(event.at for event in started)
        print(f"it stopped {began_at - last_mark:.1f} s before another began")
        assert last_mark < began_at

        proxy.thaw()
        let_go(rig)
        until(lambda: rig.run(run_id).is_ended, "the run has ended")
        assert {row.data["pid"] for row in rig.store.records.of("page")} == {near_pid}
        until(lambda: rig.worker_pid(far) not in (None, lost_pid), "it works again")
        stop(far, near)
        rig.assert_sound()
        rig.assert_records(pages(4))


def test_host_behind_a_slow_link_keeps_its_lease(
    tmp_path: Path, database: str, proxy: Proxy
) -> None:
    with Rig(tmp_path, {"shop": holding_source(4)}, HOLDING, store=database) as rig:
        proxy.delay(to_server_s=0.25, to_client_s=0.25)
        far, near = rig.start("up", *through(rig, proxy.through(database))), rig.start("worker")
        pids_by_host(rig, far, near)
        [run_id] = rig.enqueue("shop")
        wait_until_held(rig, 4)
        pass_time(LEASE_S, "a lease has passed")
        let_go(rig)
        until(lambda: rig.run(run_id).is_ended, "the run has ended")
        assert {job.attempt for job in rig.jobs(stage="hold")} == {1}
        assert rig.events("worker.reaped") == []
        stop(far, near)
        rig.assert_sound()


def test_silent_database_does_not_keep_anybody_from_stopping(
    tmp_path: Path, database: str, proxy: Proxy
) -> None:
    with Rig(tmp_path, {"shop": holding_source(2)}, HOLDING, {"grace": "1s"}, database) as rig:
        up = rig.start("up", *through(rig, proxy.through(database)))
        [pid] = pids_by_host(rig, up)
        rig.enqueue("shop")
        wait_until_held(rig, 2)
        proxy.black_hole()
        told_at = CLOCK.monotonic()
        up.terminate()
        until(lambda: not Path(f"/proc/{pid}").exists(), "its worker has ended")
        worker_s = CLOCK.monotonic() - told_at
        assert up.wait(timeout=120) == 0, rig.output(up)
        # Its grace, what it waits for an answer then, and a connection that may be under way.
        in_time(CLOCK.monotonic() - told_at, 1 + GIVE_UP_S + CONNECT_S + 8)
        in_time(worker_s, 10)


def test_scheduler_that_leads_and_is_stuck_is_followed_within_its_term(
    tmp_path: Path, database: str, proxy: Proxy
) -> None:
    with Rig(tmp_path, {"clock": TICKS}, TICKING, store=database) as rig:
        stuck = rig.start("scheduler", *through(rig, proxy.through(database)))
        until(rig.store.leaders.all, "it leads")
        [first] = rig.store.leaders.all()
        assert f"/{stuck.pid}/" in first.holder
        other = rig.start("up")
        until(
            lambda: any(run.is_ended for run in rig.store.runs.newest()),
            "a tick was fired and worked",
        )
        proxy.freeze()
        stuck_at = rig.store.now()
        until(lambda: rig.store.leaders.all()[0].term > first.term, "another leads")
        known = {run.id for run in rig.store.runs.newest(limit=1000)}
        new = until(
            lambda: [run for run in rig.store.runs.newest(limit=1000) if run.id not in known],
            "the other one fires",
        )
        in_time(min(run.created_at for run in new) - stuck_at, TERM_S + 5)
        proxy.thaw()
        pass_time(3.0, "what was held back has arrived")
        assert f"/{other.pid}/" in rig.store.leaders.all()[0].holder
        stop(stuck, other)
        assert_no_tick_is_doubled(rig)
