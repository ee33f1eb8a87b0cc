"""Pipelines as Prefect flows: whole, killed, cancelled, failed, partial, split, and for days of the past."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect import State, flow
from prefect.artifacts import Artifact

from penstock.bridges.prefect import penstock_run, pipeline_flow, signal_hook
from penstock.bridges.tasks import pipeline_tasks
from penstock.builder.registry import builder
from penstock.errors import UsageError
from tests.bridges.prefect.rig import (
    counts_by_task,
    edges,
    ended,
    flow_run,
    prefect,
    serving,
    started,
    states_by_task,
    task_runs,
    told,
)
from tests.bridges.scenes import (
    STAGES,
    assert_sound,
    builder_shaped,
    days_rig,
    edges_of,
    kill_amid,
    mended,
    rig_of,
    waiting_rig_of,
)
from tests.journeys.holding import HOLDING, held, holding_source, let_go, wait_until_held
from tests.journeys.rig import Rig, until

PAGES = 40


def run_of(made: Any, **parameters: Any) -> State[Any]:
    found: State[Any] = made(**parameters, return_state=True)
    return found


def extract_of(number: UUID) -> Callable[[], str]:
    """What became of the task `extract` of a flow run; empty as long as nobody has heard of it."""
    return lambda: states_by_task(number).get("extract", "")


def number_of(state: State[Any]) -> UUID:
    found = state.state_details.flow_run_id
    assert found is not None
    return found


def test_flow_runs_a_source_from_end_to_end_and_shows_what_it_did(tmp_path: Path) -> None:
    with rig_of(tmp_path, PAGES) as rig:
        made = pipeline_flow(tmp_path, "shop", dashboard="http://localhost:8787")

        state = run_of(made)

        assert (state.name, state.result()["state"]) == ("Completed", "completed")
        number = number_of(state)
        told(lambda: [run.name for run in task_runs(number)], ["prepare", *STAGES])
        told(lambda: edges(number), pipeline_tasks(tmp_path, "shop").edges)
        assert (rig.run(1).state, rig.run(1).actor) == ("completed", "prefect")
        table: Any = Artifact.get("penstock-shop-extract")
        assert '"succeeded"' in table.data
        assert str(PAGES) in table.data
        assert "(http://localhost:8787/runs/1)" in table.description
        link: Any = Artifact.get("penstock-shop-run")
        assert "http://localhost:8787/runs/1" in link.data
        rig.assert_records({str(number) for number in range(PAGES)})
        assert_sound(rig)


def test_flow_run_that_is_killed_and_retried_doubles_nothing(tmp_path: Path) -> None:
    pages = 400
    with (
        waiting_rig_of(tmp_path, pages, "extract") as rig,
        serving(tmp_path, "shop = pipeline_flow(folder, 'shop')", "penstock shop") as name,
    ):
        number = started(name)
        kill_amid(rig, "extract", pages // 10)
        ended(number, "Crashed")
        assert rig.run(1).state == "running"
        prefect("flow-run", "retry", str(number))
        ended(number, "Completed")

        assert flow_run(number).run_count == 2
        assert len(rig.jobs(stage="extract")) == pages
        rig.assert_records({str(number) for number in range(pages)})
        assert rig.store.runs.get(2) is None, "it went on with its run"
        assert_sound(rig)


def test_cancelled_flow_stops_its_drain_in_good_order(tmp_path: Path) -> None:
    text = "shop = pipeline_flow(folder, 'shop')"
    with (
        Rig(tmp_path, {"shop": holding_source(2)}, HOLDING, {"grace": "0s"}) as rig,
        serving(tmp_path, text, "penstock shop") as name,
    ):
        number = started(name)
        wait_until_held(rig, 2)
        prefect("flow-run", "cancel", str(number))
        ended(number, "Cancelled")
        until(lambda: rig.store.workers.all() == [], "its worker has left")
        assert [(job.state, job.tries) for job in rig.jobs(stage="hold")] == [("queued", 0)] * 2

        let_go(rig)
        prefect("flow-run", "retry", str(number))
        ended(number, "Completed")
        rig.assert_records({"0", "1"})
        assert_sound(rig)


def test_step_that_fails_fails_the_flow_and_is_tried_again_when_it_is_mended(
    tmp_path: Path,
) -> None:
    text = "shop = pipeline_flow(folder, 'shop')"
    with (
        rig_of(tmp_path, 3, bad=[0, 1, 2]) as rig,
        serving(tmp_path, text, "penstock shop") as name,
    ):
        number = started(name)
        state = ended(number, "Failed")
        assert (state.message or "").startswith(
            "extract of run 1 (shop) is failed: ValueError: no price"
        )
        completed = {"prepare": "Completed", "discover": "Completed"}
        told(lambda: states_by_task(number), {**completed, "extract": "Failed"})

        mended(rig)
        prefect("flow-run", "retry", str(number))
        ended(number, "Completed")
        assert rig.run(1).state == "completed"
        rig.assert_records({"0", "1", "2"})


def test_partial_is_a_success_a_warning_or_a_failure(tmp_path: Path) -> None:
    with rig_of(tmp_path, 5, bad=[3]) as rig:
        found = {}
        for partial, of_task in (("ok", "Completed"), ("warn", "Partial"), ("failed", "Failed")):
            state = run_of(pipeline_flow(tmp_path, "shop", partial=partial))  # type: ignore[arg-type]
            found[partial] = (state.type.value, state.name)
            number = number_of(state)
            told(extract_of(number), of_task)
        assert found == {
            "ok": ("COMPLETED", "Completed"),
            "warn": ("COMPLETED", "Partial"),
            "failed": ("FAILED", "Failed"),
        }
        assert rig.run(1).state == rig.run(2).state == "partial"


def test_task_is_tried_again_as_often_as_was_asked_but_not_in_vain(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3, bad=[0, 1, 2]) as rig:
        pipeline = pipeline_flow(tmp_path, "shop", retries=2, retry_delay_s=0.01)
        state = run_of(pipeline)
        assert state.name == "Failed"
        told(lambda: counts_by_task(number_of(state)), {"prepare": 1, "discover": 1, "extract": 3})

        wrong = run_of(pipeline_flow(tmp_path, "shop", retries=2), kind="full", first="2024-01-02")
        assert wrong.name == "Misconfigured"
        told(lambda: counts_by_task(number_of(wrong)), {"prepare": 1})
        assert wrong.message == "a run of kind full has no range of days"
        (rig.folder / "penstock.yaml").write_text("sources: [")
        broken = run_of(pipeline)
        assert (broken.name, task_runs(number_of(broken))) == ("Misconfigured", [])


def test_without_being_asked_no_task_is_tried_again(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3, bad=[0, 1, 2]):
        state = run_of(pipeline_flow(tmp_path, "shop"))
        tried_once = {"prepare": 1, "discover": 1, "extract": 1}
        told(lambda: counts_by_task(number_of(state)), tried_once)


def test_shards_work_at_once_on_a_server_and_do_each_job_once(
    tmp_path: Path, database: str
) -> None:
    text = "shop = pipeline_flow(folder, 'shop', shards=2)"
    with (
        Rig(tmp_path, {"shop": holding_source(20)}, HOLDING, {"slots": 2}, database) as rig,
        serving(tmp_path, text, "penstock shop") as name,
    ):
        number = started(name)
        until(lambda: len(held(rig)) >= 4, "both shards hold pages")
        scopes = {worker.scope for worker in rig.store.workers.all()}
        let_go(rig)
        ended(number, "Completed")

        assert len(scopes) == 2
        shards = ["hold 1/2", "hold 2/2"]
        told(lambda: [each for each in sorted(states_by_task(number)) if "hold" in each], shards)
        rig.assert_records({str(number) for number in range(20)})
        assert_sound(rig)


def test_days_as_parameters_make_a_backfill(tmp_path: Path) -> None:
    with days_rig(tmp_path) as rig:
        state = run_of(pipeline_flow(tmp_path, "prices"), first="2024-01-02", last="2024-01-03")
        assert state.is_completed()
        assert rig.run(1).kind == "backfill"
        rig.assert_records({"AAPL 2024-01-02", "AAPL 2024-01-03"}, "day")


@pytest.mark.parametrize("profile", list(builder.profiles))
def test_edges_of_a_flow_are_those_of_the_registry(tmp_path: Path, profile: str) -> None:
    with builder_shaped(tmp_path, profile):
        state = run_of(pipeline_flow(tmp_path, "companies"))
        assert state.is_completed(), state.message
        told(lambda: edges(number_of(state)), edges_of(profile))


def test_run_of_penstock_is_awaited_and_a_flow_run_is_one_signal(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3) as rig:

        @flow(on_completion=[signal_hook(tmp_path, "etl.done", "shop")])
        def nightly() -> Any:
            return penstock_run(str(tmp_path), "shop", every_s=0.1)["state"]

        up = rig.start("up")
        state = run_of(nightly)
        assert state.is_completed()
        [signal] = rig.store.signals.newest("etl.done", 5, None)
        assert signal.data["run"] == str(number_of(state))
        up.terminate()
        up.wait(60)
        rig.assert_records({"0", "1", "2"})


def test_what_can_not_be_a_flow_is_refused_in_one_line(tmp_path: Path) -> None:
    with rig_of(tmp_path, 1) as rig:
        with pytest.raises(UsageError, match="no source 'shp'"):
            pipeline_flow(tmp_path, "shp")
        with pytest.raises(UsageError, match="one task works at a time"):
            pipeline_flow(tmp_path, "shop", shards=2)
        with pytest.raises(UsageError, match="partial is one of"):
            pipeline_flow(tmp_path, "shop", partial="maybe")  # type: ignore[arg-type]
        up = rig.start("up")
        until(rig.store.workers.all, "a worker is there")
        state = run_of(pipeline_flow(tmp_path, "shop", retries=1, retry_delay_s=0.01))
        assert "on SQLite a drain has the project to itself" in (state.message or "")
        up.terminate()
        up.wait(60)
