"""A source's pipeline as a DAG on a real Airflow: whole, failing, partial, again, in shards, in the past."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.bridges.airflow.home import dag_file, play
from tests.bridges.airflow.projects import BACKFILLED, STEPS, dag_text, source
from tests.journeys.rig import Rig

ALL = {"prepare", "discover", "extract", "persist", "package"}


def test_run_of_the_dag_is_one_run_of_the_source(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(12)}, STEPS) as rig:
        more = "collections=['page'], dashboard='http://localhost:8080'"
        with dag_file(dag_text(tmp_path, more)) as module:
            played = play(module.dag)

        assert played.state == "success"
        assert set(played.states) == {*ALL, "publish"}
        assert played.answers["prepare"] == 1
        assert played.answers["extract"] == {
            "run": 1,
            "source": "shop",
            "stage": "extract",
            "shard": "1/1",
            "state": "ok",
            "run_state": "running",
            "counts": {"succeeded": 12},
            "url": "http://localhost:8080/runs/1",
        }
        assert (rig.run(1).state, rig.run(1).actor) == ("completed", "airflow")
        [event] = asset_events("penstock://journey/page")
        assert (event["run"], event["run state"], event["records"]) == (1, "completed", 12)
        assert (event["rejects"], event["alerts"]) == (True, True)
        rig.assert_records({str(number) for number in range(12)})
        rig.assert_sound()


def test_dag_run_that_is_cleared_and_run_again_is_the_same_run(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(5)}, STEPS) as rig:
        at = datetime(2026, 3, 1, tzinfo=UTC)
        with dag_file(dag_text(tmp_path)) as module:
            first, second = (play(module.dag, logical_date=at, run_after=at) for _ in range(2))

        assert first.run_id == second.run_id
        assert second.answers["prepare"] == first.answers["prepare"] == 1
        assert [run.id for run in rig.store.runs.newest("shop")] == [1]
        rig.assert_sound()


def test_failed_stage_fails_its_task_and_is_a_signal(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(3, bad=[0, 1, 2])}, STEPS) as rig:
        with dag_file(dag_text(tmp_path)) as module:
            played = play(module.dag)

        assert played.state == "failed"
        assert (played.states["extract"], played.tries["extract"]) == ("failed", 2)
        assert played.states["persist"] == played.states["package"] == "upstream_failed"
        signals = rig.store.signals.newest("airflow.failed", 10)
        assert [(each.name, each.source, each.actor) for each in signals] == [
            ("airflow.failed", "shop", "airflow")
        ]
        data = signals[0].data
        assert (data["task"], data["attempt"], data["run"]) == ("extract", 2, played.run_id)
        assert "extract of run 1 (shop) is failed: ValueError: page" in data["error"]
        assert attempts(rig, "extract") == [2, 2, 2]


def test_partial_stage_is_a_success_with_a_warning(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(6, bad=[2])}, STEPS) as rig:
        with dag_file(dag_text(tmp_path)) as module:
            played = play(module.dag)

        assert played.state == "success"
        assert played.answers["extract"]["state"] == "partial"
        assert played.answers["extract"]["counts"] == {"succeeded": 5, "quarantined": 1}
        assert rig.run(1).state == "partial"
        rig.assert_sound()


def test_partial_stage_is_a_failure_where_that_is_asked_for(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(6, bad=[2])}, STEPS) as rig:
        with dag_file(dag_text(tmp_path, "partial='failed'")) as module:
            played = play(module.dag)

        assert played.state == "failed"
        assert (played.states["extract"], played.states["persist"]) == ("failed", "upstream_failed")
        assert attempts(rig, "extract") == [1, 1, 2, 1, 1, 1]


def test_second_try_of_a_task_performs_again_only_what_failed(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(6, bad=[2])}, STEPS) as rig:
        # Mended between the two tries, by a callback that Airflow calls before the second.
        text = dag_text(
            tmp_path, "partial='failed', tasks={'extract': {'on_retry_callback': mend}}"
        )
        mend = f"def mend(context):\n    open({str(tmp_path / 'mended')!r}, 'w').close()\n\n"
        with dag_file(mend + text) as module:
            played = play(module.dag)

        assert played.state == "success"
        assert played.tries["extract"] == 2
        assert attempts(rig, "extract") == [1, 1, 2, 1, 1, 1]
        assert rig.run(1).state == "completed"
        rig.assert_records({str(number) for number in range(6)})


def test_shards_are_mapped_tasks_and_each_job_belongs_to_one(
    tmp_path: Path, schema_database: str
) -> None:
    with Rig(tmp_path, {"shop": source(20)}, STEPS, store=schema_database) as rig:
        with dag_file(dag_text(tmp_path, "shards=3")) as module:
            played = play(module.dag)

        assert played.state == "success"
        assert set(played.states) == {
            "prepare",
            "discover",
            *(f"{stage}[{part}]" for stage in ("extract", "persist") for part in range(3)),
            "package",
        }
        assert [played.answers[f"extract[{part}]"]["shard"] for part in range(3)] == [
            "1/3",
            "2/3",
            "3/3",
        ]
        rig.assert_records({str(number) for number in range(20)})
        rig.assert_sound()


def test_backfill_fetches_the_data_interval_of_its_run(tmp_path: Path) -> None:
    days = {"pipeline": "steps:bars", "backfill": {"window": "1d"}}
    with Rig(tmp_path, {"shop": days}, BACKFILLED) as rig:
        more = "kind='backfill', schedule='@daily'"
        with dag_file(dag_text(tmp_path, more)) as module:
            # The interval that ends then is that of the day before.
            played = play(module.dag, logical_date=datetime(2026, 3, 3, tzinfo=UTC))
            asked = {"from": "2026-03-10", "to": "2026-03-12"}
            by_hand = play(module.dag, run_conf=asked)

        assert (played.state, by_hand.state) == ("success", "success")
        rig.assert_records({"2026-03-02", "2026-03-10", "2026-03-11", "2026-03-12"}, "bar")
        assert [run.kind for run in rig.store.runs.newest("shop")] == ["backfill", "backfill"]
        rig.assert_sound()


def test_backfill_of_no_time_is_refused_and_not_tried_again(tmp_path: Path) -> None:
    days = {"pipeline": "steps:bars", "backfill": {"window": "1d"}}
    with Rig(tmp_path, {"shop": days}, BACKFILLED) as rig:
        with dag_file(dag_text(tmp_path, "kind='backfill'")) as module:
            played = play(module.dag)

        assert (played.states["prepare"], played.tries["prepare"]) == ("failed", 1)
        assert "covers no time" in rig.store.signals.newest("airflow.failed", 10)[0].data["error"]


def test_one_task_at_a_time_on_a_file_and_any_number_on_a_server(
    tmp_path: Path, schema_database: str
) -> None:
    from penstock.bridges.airflow import pipeline_dag
    from penstock.errors import UsageError

    with Rig(tmp_path, {"shop": source(1)}, STEPS):
        dag = pipeline_dag(tmp_path, "shop")
        assert (dag.max_active_tasks, dag.max_active_runs, dag.catchup) == (1, 1, False)
        with pytest.raises(UsageError, match="on SQLite one task works at a time"):
            pipeline_dag(tmp_path, "shop", max_active_tasks=4)
        with pytest.raises(UsageError, match="can't be split into shards"):
            pipeline_dag(tmp_path, "shop", shards=2)
    with Rig(tmp_path, {"shop": source(1)}, STEPS, store=schema_database):
        assert pipeline_dag(tmp_path, "shop", max_active_tasks=4).max_active_tasks == 4


def attempts(rig: Rig, stage: str) -> list[int]:
    """How often each job of a stage was performed, in the order of their numbers."""
    return [job.attempt for job in sorted(rig.jobs(stage=stage), key=lambda job: job.id)]


def asset_events(uri: str) -> list[dict[str, Any]]:
    """What Airflow has been told about an asset."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(AssetEvent).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        return [event.extra for event in session.scalars(query.where(AssetModel.uri == uri))]
