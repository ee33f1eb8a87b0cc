"""Both directions: Airflow waits for Penstock's runs, and its own runs are signals to Penstock."""

from __future__ import annotations

from pathlib import Path

from tests.bridges.airflow.home import dag_file, play
from tests.bridges.airflow.projects import STEPS, source
from tests.journeys.rig import Rig

WAITING = """
from airflow.sdk import DAG
from penstock.bridges.airflow import PenstockRunSensor, PenstockSignal, StartRunOperator

with DAG("waiting", on_success_callback=PenstockSignal({folder!r}, "dbt.done", data={{"models": 12}})) as dag:
    start = StartRunOperator(task_id="start", project={folder!r}, source="shop")
    shared = {{"project": {folder!r}, "poke_interval": 0.2{more}}}
    start >> PenstockRunSensor(task_id="wait", run=start.output, **shared)
    start >> PenstockRunSensor(task_id="newest", source="shop", **shared)
"""


def waiting(folder: Path, more: str = "") -> str:
    return WAITING.format(folder=str(folder), more=more)


def test_sensor_waits_for_a_run_that_workers_perform(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(4)}, STEPS) as rig:
        rig.start("up")
        with dag_file(waiting(tmp_path)) as module:
            played = play(module.dag)

        assert played.state == "success"
        assert played.answers == {"start": 1, "wait": 1, "newest": 1}
        assert rig.run(1).state == "completed"
        rig.assert_records({str(number) for number in range(4)})


def test_ended_dag_run_is_a_signal_once(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(1)}, STEPS) as rig:
        rig.start("up")
        with dag_file(waiting(tmp_path)) as module:
            played = play(module.dag)

        [signal] = rig.store.signals.newest("dbt.done", 10)
        assert (signal.data["dag"], signal.data["run"]) == ("waiting", played.run_id)
        assert signal.data["models"] == 12
        assert [each.actor for each in rig.events("signal.raised")] == ["airflow"]


def test_sensor_fails_with_its_run(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(2, bad=[0, 1])}, STEPS) as rig:
        rig.start("up")
        with dag_file(waiting(tmp_path)) as module:
            played = play(module.dag)

        assert (played.states["start"], played.states["wait"]) == ("success", "failed")


def test_partial_run_is_a_failure_where_that_is_asked_for(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(2, bad=[0])}, STEPS) as rig:
        rig.start("up")
        with dag_file(waiting(tmp_path)) as module:
            forgiving = play(module.dag)
        with dag_file(waiting(tmp_path, ", 'partial': 'failed', 'deferrable': False")) as module:
            strict = play(module.dag)

        assert (forgiving.states["wait"], strict.states["wait"]) == ("success", "failed")
