"""Sensors: what starts runs of Dagster, and what its runs tell Penstock."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
import pytest

from penstock.bridges.dagster import (
    budget_reset_sensor,
    new_input_sensor,
    penstock_run_op,
    penstock_runs_sensor,
    pipeline_job,
    signal_sensor,
    signal_to_penstock,
)
from penstock.bridges.places import place_of
from penstock.bridges.watching import raise_signal
from penstock.errors import UsageError
from tests.bridges.scenes import STEPS, configured, rig_of, source
from tests.journeys.rig import Rig


class Sensor:
    """A sensor that is looked at again and again, as the daemon does."""

    def __init__(self, definition: dg.SensorDefinition, instance: dg.DagsterInstance) -> None:
        self._definition, self._instance = definition, instance
        self._cursor: str | None = None

    def look(self) -> list[dg.RunRequest]:
        context = dg.build_sensor_context(instance=self._instance, cursor=self._cursor)
        found = self._definition.evaluate_tick(context)
        self._cursor = found.cursor
        return list(found.run_requests or [])


def test_new_input_requests_one_run(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with rig_of(tmp_path, 1):
        job = pipeline_job(tmp_path, "shop")
        sensor = Sensor(new_input_sensor(inbox, job, pattern="*.csv"), instance)
        assert sensor.look() == []
        for name in ("a.csv", "b.csv", "c.txt"):
            (inbox / name).write_text("x")
            os.utime(inbox / name, (1_000_000, 1_000_000))
        [asked] = sensor.look()
        assert asked.tags["penstock/input"] == "a.csv, b.csv"
        assert sensor.look() == []


def test_budget_that_resets_requests_one_run(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    spending = STEPS.replace("    if page", "    ctx.spend(requests=1)\n    if page", 1)
    slow = {**source(6), "limits": {"concurrency": 1}}
    with Rig(tmp_path, {"shop": {**slow, "budget": {"requests": "2/d"}}}, spending):
        job = pipeline_job(tmp_path, "shop", partial="failed", retry_policy=None)
        sensor = Sensor(budget_reset_sensor(tmp_path, "shop", job), instance)
        assert sensor.look() == []
        assert not job.execute_in_process(raise_on_error=False).success
        assert sensor.look() == []
        configured(tmp_path, sources={"shop": {**slow, "budget": {"requests": "9/d"}}})
        [asked] = sensor.look()
        assert asked.tags["penstock/budget"] == "shop: requests a day"
        assert sensor.look() == []


def test_signals_and_ended_runs_of_penstock_request_runs_once(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    with rig_of(tmp_path, 1):
        job = pipeline_job(tmp_path, "shop")
        config = {"ops": {"penstock_run": {"config": {"pages": 1}}}}
        by_signal = Sensor(
            signal_sensor(tmp_path, "gap.found", job, run_config=lambda _: config), instance
        )
        by_run = Sensor(penstock_runs_sensor(tmp_path, "shop", job), instance)
        assert by_signal.look() == by_run.look() == []

        number = raise_signal(place_of(tmp_path), "gap.found", {"days": 2}, actor="test")
        assert job.execute_in_process().success

        [asked] = by_signal.look()
        assert (asked.run_key, asked.run_config) == (f"signal:{number}", config)
        [asked] = by_run.look()
        assert asked.tags.items() >= {"penstock/run": "1", "penstock/state": "completed"}.items()
        assert by_signal.look() == by_run.look() == []


def test_run_of_dagster_is_one_signal(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    with rig_of(tmp_path, 1) as rig:
        job = pipeline_job(tmp_path, "shop")
        result = job.execute_in_process(instance=instance)
        sensor = signal_to_penstock(tmp_path, "etl.done", jobs=[job])
        context = dg.build_run_status_sensor_context(
            sensor_name=sensor.name,
            dagster_event=result.get_run_success_event(),
            dagster_instance=instance,
            dagster_run=result.dagster_run,
        )
        sensor(context)
        sensor(context)
        [signal] = rig.store.signals.newest("etl.done", 5, None)
        assert signal.data == {
            "engine": "dagster",
            "job": "penstock_shop",
            "run": result.run_id,
            "state": "SUCCESS",
        }


def test_run_of_penstock_is_awaited(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3) as rig:
        awaited = penstock_run_op(tmp_path, "shop", every_s=0.1)
        nightly = dg.GraphDefinition("nightly", node_defs=[awaited]).to_job()
        up = rig.start("up")
        assert nightly.execute_in_process().output_for_node("run_of_shop") == 1
        up.terminate()
        up.wait(60)
        rig.assert_records({"0", "1", "2"})


def test_sensors_of_what_is_not_there_are_refused_in_one_line(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    with rig_of(tmp_path, 1):
        job = pipeline_job(tmp_path, "shop")
        with pytest.raises(UsageError, match="no source 'shp'"):
            budget_reset_sensor(tmp_path, "shp", job)
        lost = Sensor(new_input_sensor(tmp_path / "lost", job), instance)
        with pytest.raises(UsageError, match="there is no folder"):
            lost.look()
