"""DAGs under Airflow's own scheduler and LocalExecutor: tasks that are killed, stopped, and side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bridges.airflow.projects import BACKFILLED, dag_text
from tests.bridges.airflow.services import WITHIN_S, Airflow, running_airflow
from tests.journeys.holding import HOLDING, held, holding_source, let_go
from tests.journeys.rig import Rig, kill, parent_of, until


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    with running_airflow(tmp_path_factory.mktemp("airflow") / "home") as running:
        yield running


def test_killed_task_is_tried_again_by_airflow_and_doubles_nothing(
    airflow: Airflow, tmp_path: Path
) -> None:
    with Rig(tmp_path, {"shop": holding_source(6)}, HOLDING) as rig:
        # A deadline that is missed while the pages are held.
        more = "dag_id='killed', deadline=timedelta(seconds=1)"
        (airflow.dags / "killed.py").write_text(dag_text(tmp_path, more))
        airflow.trigger("killed", "monday")
        until_held(rig, 4)

        kill(task_of(rig))
        until(
            lambda: airflow.tasks("killed", "monday")["hold"][1] == 2,
            "Airflow tries again",
            within_s=WITHIN_S,
        )
        let_go(rig)

        assert airflow.wait("killed", "monday") == "success", airflow.logs()
        assert airflow.tasks("killed", "monday")["hold"] == ("success", 2)
        assert rig.run(1).state == "completed"
        rig.assert_records({str(number) for number in range(6)})
        rig.assert_sound()
        missed = until(
            lambda: rig.store.signals.newest("airflow.deadline_missed", 10),
            "the triggerer reports the deadline",
            within_s=WITHIN_S,
        )
        assert [(each.source, each.data["dag"], each.data["run"]) for each in missed] == [
            ("shop", "killed", "monday")
        ]


def test_task_that_is_marked_as_failed_stops_in_good_order(
    airflow: Airflow, tmp_path: Path
) -> None:
    with Rig(tmp_path, {"shop": holding_source(3)}, HOLDING) as rig:
        (airflow.dags / "stopped.py").write_text(dag_text(tmp_path, "dag_id='stopped'"))
        airflow.trigger("stopped", "tuesday")
        until_held(rig, 3)
        task = task_of(rig)

        airflow.fail_task("stopped", "tuesday", "hold")

        until(lambda: parent_of(task) is None, "the task has ended", within_s=WITHIN_S)
        assert [(job.state, job.tries) for job in rig.jobs(stage="hold")] == [("queued", 0)] * 3
        assert airflow.wait("stopped", "tuesday") == "failed"
        let_go(rig)
        assert rig.penstock("drain", "1", "hold").returncode == 0
        rig.assert_records({str(number) for number in range(3)})
        rig.assert_sound()


def test_shards_work_side_by_side_on_postgres(
    airflow: Airflow, tmp_path: Path, schema_database: str
) -> None:
    with Rig(tmp_path, {"shop": holding_source(8)}, HOLDING, store=schema_database) as rig:
        (airflow.dags / "shards.py").write_text(dag_text(tmp_path, "dag_id='shards', shards=2"))
        airflow.trigger("shards", "wednesday")

        until(
            lambda: len({worker.pid for worker in rig.store.workers.all()}) == 2,
            "two drains are at work",
            within_s=WITHIN_S,
        )
        let_go(rig)

        assert airflow.wait("shards", "wednesday") == "success", airflow.logs()
        assert set(airflow.tasks("shards", "wednesday")) == {
            "prepare",
            "discover",
            "hold[0]",
            "hold[1]",
        }
        rig.assert_records({str(number) for number in range(8)})
        rig.assert_sound()


def test_backfill_of_airflow_fetches_each_of_its_days(airflow: Airflow, tmp_path: Path) -> None:
    days = {"pipeline": "steps:bars", "backfill": {"window": "1d"}}
    with Rig(tmp_path, {"shop": days}, BACKFILLED) as rig:
        # Airflow's runs for the past are beside the scheduled one, and they share a SQLite file.
        airflow.call("POST", "pools", {"name": "shop", "slots": 1})
        more = "dag_id='past', kind='backfill', schedule='@daily', pool='shop'"
        (airflow.dags / "past.py").write_text(dag_text(tmp_path, more))
        asked: dict[str, Any] = {
            "from_date": "2026-03-01",
            "to_date": "2026-03-02",
            "max_active_runs": 1,
        }

        airflow.backfill("past", asked)

        until(lambda: len(backfills(airflow)) == 2, "there are two runs", within_s=WITHIN_S)
        for run in airflow.runs("past"):
            assert airflow.wait("past", run) == "success", airflow.logs()
        days_there = {row.key for row in rig.store.records.of("bar", limit=100)}
        assert {"2026-03-01", "2026-03-02"} < days_there, "and the day of the schedule"
        rig.assert_sound()


def backfills(airflow: Airflow) -> list[str]:
    return [run for run in airflow.runs("past") if run.startswith("backfill")]


def task_of(rig: Rig) -> int:
    """The process of the task whose drain is at work."""
    [worker] = rig.store.workers.all()
    task = parent_of(worker.pid)
    assert task is not None
    return task


def until_held(rig: Rig, pages: int) -> None:
    until(lambda: len(held(rig)) >= pages, f"{pages} pages are held", within_s=WITHIN_S)
