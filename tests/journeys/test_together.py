"""Two commands on one project: one works, the other says so, or watches, or takes over."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from tests.journeys.holding import HOLDING, holding_source, let_go, wait_until_held
from tests.journeys.rig import Rig, until

TICKING = """
from penstock import Pipeline

ticks = Pipeline("ticks")


@ticks.step(unit="run")
async def tick(ctx):
    ctx.save("tick", key=str(ctx.run.id), data={})
"""


def test_second_up_is_refused_and_names_the_first(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(1)}, HOLDING) as rig:
        process = rig.start("up")
        until(lambda: rig.worker_pid(process), "the first one works")

        second = rig.penstock("up")

        assert second.returncode == 6
        assert f"another Penstock (pid {process.pid}) is working" in second.stderr
        assert "Traceback" not in second.stderr
        process.terminate()
        assert process.wait(timeout=120) == 0


def test_run_beside_an_up_lets_it_do_the_work(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(3)}, HOLDING) as rig:
        let_go(rig)
        process = rig.start("up")
        worker = until(lambda: rig.worker_pid(process), "it works")

        done = rig.penstock("run", "shop", "--json")

        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["state"] == "completed"
        assert "this command shows its progress" in done.stderr
        assert {row.data["pid"] for row in rig.store.records.of("page")} == {worker}
        process.terminate()
        assert process.wait(timeout=120) == 0
        rig.assert_sound()


def test_run_takes_over_when_the_up_that_did_its_work_dies(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(3)}, HOLDING) as rig:
        up = rig.start("up")
        until(lambda: rig.worker_pid(up), "it works")
        run = rig.start("run", "shop")
        wait_until_held(rig, 3)
        until(lambda: "this command shows its progress" in rig.output(run), "the other one watches")
        up.kill()
        up.wait()
        let_go(rig)

        assert run.wait(timeout=120) == 0, rig.output(run)

        rig.assert_sound()
        rig.assert_records({"0", "1", "2"})


def test_source_with_a_schedule_is_run_again_and_again(tmp_path: Path) -> None:
    source = {"pipeline": "steps:ticks", "schedule": {"every": "2s"}}
    with Rig(tmp_path, {"clock": source}, TICKING) as rig:
        process = rig.start("up")
        until(
            lambda: rig.database.exists() and len(rig.store.runs.newest()) >= 3,
            "it ran three times",
        )
        process.terminate()
        assert process.wait(timeout=120) == 0
        runs = rig.store.runs.newest()
        assert {run.actor for run in runs} == {"scheduler"}
        times = sorted(run.created_at for run in runs)
        assert all(later - earlier > 0.5 for earlier, later in itertools.pairwise(times))
        rig.assert_records({str(run.id) for run in runs if run.is_ended}, "tick")
