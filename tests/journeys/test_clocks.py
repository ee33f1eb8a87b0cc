"""Hosts whose clocks are wrong, and are set while they work: nothing comes of it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from functools import partial
from pathlib import Path

from penstock.prove.wrong_clock import WrongClock
from penstock.store.workers import LEASE_S
from tests.clocked import in_time
from tests.journeys.holding import HOLDING, holding_source, let_go, wait_until_held
from tests.journeys.rig import CLOCK, ENVIRONMENT, Rig, until
from tests.journeys.test_many_hosts import TICKS, assert_no_tick_is_doubled, pids_by_host, stop

HOUR_S = 3600.0
BOTH = f"""
{HOLDING}

ticks = Pipeline("ticks")


@ticks.step(unit="run")
async def tick(ctx):
    ctx.save("tick", key=str(ctx.run.id), data={{}})
"""


class Host(WrongClock):
    """A host with a clock that can be set."""

    def __init__(self, rig: Rig, name: str, wrong_by: float) -> None:
        super().__init__(rig.folder, name, wrong_by)
        self.process: subprocess.Popen[str] = rig.start("up", **self.environment)

    def shows(self) -> float:
        """The time of day, as a process on this host sees it."""
        code = "import time; print(time.time())"
        environment = {**ENVIRONMENT, **self.environment}
        told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
        return float(told.stdout)


def is_over(moment: float) -> bool:
    return CLOCK.monotonic() > moment


def test_clocks_an_hour_off_and_set_at_any_moment_change_nothing(
    tmp_path: Path, database: str
) -> None:
    sources = {"shop": holding_source(4), "clock": TICKS}
    with Rig(tmp_path, sources, BOTH, store=database) as rig:
        fast, slow = Host(rig, "fast", HOUR_S), Host(rig, "slow", -HOUR_S)
        pids_by_host(rig, fast.process, slow.process)
        assert fast.shows() - slow.shows() > HOUR_S
        began_at = rig.store.now()
        [run_id] = rig.enqueue("shop")
        wait_until_held(rig, 4)
        over_at = CLOCK.monotonic() + LEASE_S + 5
        for turn in itertools.count():
            if is_over(over_at):
                break
            fast.set(HOUR_S * (-1) ** turn)
            slow.set(HOUR_S * (-1) ** (turn // 3))
            next_at = CLOCK.monotonic() + 0.2
            until(partial(is_over, next_at), "a moment has passed")
        let_go(rig)
        until(lambda: rig.run(run_id).is_ended, "the run has ended")

        assert {job.attempt for job in rig.jobs(stage="hold")} == {1}
        assert rig.events("worker.reaped", "leader.resigned") == []
        assert len(rig.events("leader.elected")) == 1
        ticks = sorted(run.created_at for run in rig.store.runs.newest("clock", limit=1000))
        assert began_at - 60 < ticks[0]
        assert ticks[-1] < rig.store.now()
        in_time(max(later - earlier for earlier, later in itertools.pairwise(ticks)), 30)
        stop(fast.process, slow.process)
        assert_no_tick_is_doubled(rig)
        assert rig.store.upkeep.check() == []
