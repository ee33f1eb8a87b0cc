"""A task's work without an engine: prepared once, drained, stopped, killed, and told in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from penstock.app.leading import is_led
from penstock.bridges.builder_steps import run_command
from penstock.bridges.changes import new_files, new_signals, newly_ended_runs, reset_budgets
from penstock.bridges.drains import (
    TaskFailed,
    drain_stage,
    failing_in_one_line,
    in_thread,
    prepare_run,
    stop_drains,
)
from penstock.bridges.places import Place, place_of
from penstock.bridges.quality import states_of
from penstock.bridges.watching import raise_signal, start_run, wait_for_run
from penstock.errors import UsageError
from tests.bridges.scenes import STAGES, STEPS, configured, days_rig, rig_of, source
from tests.journeys.holding import HOLDING, held, holding_source, let_go, wait_until_held
from tests.journeys.rig import ENVIRONMENT, Rig, until

ACTOR = "engine"


def prepared(place: Place, key: str = "run-1") -> int:
    return prepare_run(place, "shop", key, actor=ACTOR)


def drained(place: Place, run_id: int) -> None:
    for stage in STAGES:
        drain_stage(place, run_id, stage, actor=ACTOR)


def test_run_is_prepared_once_under_the_key_of_the_engine(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3) as rig:
        place = place_of(tmp_path)
        assert prepared(place) == prepared(place)
        assert prepared(place, "run-2") != prepared(place)
        assert {run.actor for run in map(rig.run, (1, 2))} == {ACTOR}


def test_partial_is_fine_a_warning_or_a_failure_as_was_asked(tmp_path: Path) -> None:
    with rig_of(tmp_path, 5, bad=[3]):
        place = place_of(tmp_path)
        run_id = prepared(place)
        drain_stage(place, run_id, "discover", actor=ACTOR)

        warned = drain_stage(
            place, run_id, "extract", dashboard="https://penstock.example.com/", actor=ACTOR
        )
        assert warned.counts == {"succeeded": 4, "quarantined": 1}
        assert warned.warning == (
            f"extract of run {run_id} is partial; 1 job in quarantine: ValueError: no price"
        )
        assert warned.url == f"https://penstock.example.com/runs/{run_id}"
        assert drain_stage(place, run_id, "extract", partial="ok", actor=ACTOR).warning == ""
        with pytest.raises(TaskFailed, match="is partial: ValueError: no price") as failed:
            drain_stage(place, run_id, "extract", partial="failed", actor=ACTOR)
        assert not failed.value.is_final


def test_second_try_queues_what_is_in_quarantine_again(tmp_path: Path) -> None:
    with rig_of(tmp_path, 5, bad=[3]) as rig:
        place = place_of(tmp_path)
        run_id = prepared(place)
        for stage in ("discover", "extract"):
            drain_stage(place, run_id, stage, actor=ACTOR)
        configured(tmp_path, sources={"shop": source(5)})

        assert drain_stage(place, run_id, "extract", actor=ACTOR).warning != ""
        again = drain_stage(place, run_id, "extract", attempt=2, actor=ACTOR)

        assert again.counts == {"succeeded": 5}
        drained(place, run_id)
        rig.assert_records({str(number) for number in range(5)})


def test_what_an_engine_raises_in_a_task_stops_its_drain_in_good_order(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(2)}, HOLDING, {"grace": "0s"}) as rig:
        place = place_of(tmp_path)
        run_id = prepared(place)
        drain_stage(place, run_id, "discover", actor=ACTOR)

        class Cancelled(BaseException):
            pass

        def cancel(*_: object) -> None:
            raise Cancelled

        before = signal.signal(signal.SIGTERM, cancel)
        try:
            with _terminated_when(lambda: len(held(rig)) >= 2), pytest.raises(Cancelled):
                drain_stage(place, run_id, "hold", actor=ACTOR)
            assert signal.getsignal(signal.SIGTERM) is cancel, "the engine's handler stays"
        finally:
            signal.signal(signal.SIGTERM, before)
        assert [(job.state, job.tries) for job in rig.jobs(stage="hold")] == [("queued", 0)] * 2

        for path in held(rig):
            path.unlink()
        stopped = pytest.raises(TaskFailed, match="drain it again")
        with _doing(stop_drains, lambda: len(held(rig)) >= 2), stopped:
            drain_stage(place, run_id, "hold", actor=ACTOR)
        let_go(rig)
        drain_stage(place, run_id, "hold", actor=ACTOR)
        rig.assert_sound()


def _terminated_when(condition: Callable[[], bool]) -> AbstractContextManager[None]:
    return _doing(lambda: os.kill(os.getpid(), signal.SIGTERM), condition)


@contextmanager
def _doing(act: Callable[[], None], when: Callable[[], bool]) -> Iterator[None]:
    """Do something as soon as something holds, from another thread."""

    def wait_and_act() -> None:
        until(when, "it is amid the drain")
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    yield
    thread.join()


def test_wrong_configuration_is_final_and_said_in_one_line_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "t0p-s3cret-value")
    told: list[str] = []
    loud = STEPS.replace('"no price"', "ctx.params['token']")
    with Rig(tmp_path, {"shop": source(3, bad=[1], token="${SHOP_TOKEN}")}, loud):
        place = place_of(tmp_path)
        run_id = prepared(place)
        drain_stage(place, run_id, "discover", actor=ACTOR)
        end = drain_stage(place, run_id, "extract", tell=told.append, actor=ACTOR)
        with pytest.raises(TaskFailed) as failed:
            drain_stage(place, run_id, "extract", partial="failed", actor=ACTOR)
        with pytest.raises(TaskFailed, match="no step 'extrct'") as wrong:
            drain_stage(place, run_id, "extrct", actor=ACTOR)
        steps = tmp_path / "steps.py"
        steps.write_text("import os\nraise RuntimeError(os.environ['SHOP_TOKEN'])")
        with pytest.raises(TaskFailed, match="a worker could not work") as unloadable:
            drain_stage(place, run_id, "clean", tell=told.append, actor=ACTOR)

    messages = [failed.value.message, unloadable.value.message]
    texts = [*told, *messages, end.warning, str(end.as_json())]
    assert told
    assert "t0p-s3cret-value" not in "\n".join(texts)
    assert "***" in end.warning
    assert (wrong.value.is_final, failed.value.is_final) == (True, False)
    assert "\n" not in wrong.value.message
    (tmp_path / "penstock.yaml").write_text("sources: [")
    with pytest.raises(TaskFailed) as unreadable:
        prepared(place)
    assert unreadable.value.is_final
    assert "\n" not in unreadable.value.message


def test_code_that_can_not_be_loaded_is_named(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3):
        place = place_of(tmp_path)
        run_id = prepared(place)
        (tmp_path / "steps.py").write_text("import nowhere_to_be_found")
        with pytest.raises(TaskFailed, match=r"a worker could not work .*nowhere_to_be_found"):
            drain_stage(place, run_id, "discover", actor=ACTOR)


def test_error_is_one_line_in_which_secrets_are_masked() -> None:
    hidden = frozenset({"hush-hush-hush"})
    with pytest.raises(TaskFailed) as failed, failing_in_one_line(hidden):
        raise UsageError("it is\nhush-hush-hush", "say hush-hush-hush")
    assert failed.value.message == "it is *** (say ***)"


def test_in_thread_answers_and_raises_as_if_it_were_done_here() -> None:
    assert in_thread(lambda stopping: stopping.is_set()) is False
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda _: 1 / 0)


# Commands under a lifeline.


def test_command_answers_its_code_and_its_lines_without_secrets(tmp_path: Path) -> None:
    told: list[str] = []
    env = {"MY_PASSWORD": "hush-hush-hush"}
    code, last = run_command(["drain", "hush-hush-hush"], env, told.append)
    assert code == 2
    assert last
    assert "hush-hush-hush" not in "".join(told)


def test_command_dies_with_the_task_that_is_killed(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(2)}, HOLDING) as rig:
        place = place_of(tmp_path)
        run_id = prepared(place)
        drain_stage(place, run_id, "discover", actor=ACTOR)
        text = (
            "from penstock.bridges.builder_steps import run_command\n"
            f"run_command(['--project', {str(tmp_path)!r}, 'drain', '{run_id}', 'hold'], {{}}, print)"
        )
        told = tmp_path / "told.txt"
        with told.open("w") as out:
            task = subprocess.Popen([sys.executable, "-c", text], env=ENVIRONMENT, stdout=out)
        wait_until_held(rig, 2)
        # From here on it has nothing to print, so that no broken pipe can end it.
        until(lambda: "2 running" in told.read_text(), "it has told of both")
        [command] = _children(task.pid)
        task.kill()
        task.wait()

        until(lambda: not Path(f"/proc/{command}").exists(), "the command is gone", within_s=30)
        let_go(rig)
        assert rig.penstock("drain", str(run_id), "hold").returncode == 0
        assert rig.run(run_id).state == "completed"
        rig.assert_sound()


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# The other direction.


def test_run_of_workers_is_started_and_awaited(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3, bad=[1]) as rig:
        place = place_of(tmp_path)
        run_id = start_run(place, "shop", actor=ACTOR)
        slept: list[float] = []

        def work(seconds: float) -> None:
            slept.append(seconds)
            assert rig.penstock("up", "--until-idle").returncode == 0

        view = wait_for_run(place, run_id, pause=work, every_s=7)
        assert (view.state, slept) == ("partial", [7])
        with pytest.raises(
            TaskFailed, match=f"run {run_id} of shop is partial; 1 job in quarantine"
        ):
            wait_for_run(place, run_id, partial="failed")


def test_run_of_an_engine_is_one_signal_however_often_it_is_told(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3):
        place = place_of(tmp_path)
        _, cursor = new_signals(place, "etl.done", None)
        numbers = {
            raise_signal(place, "etl.done", {"run": "a"}, key="a", actor=ACTOR) for _ in range(2)
        }
        found, cursor = new_signals(place, "etl.done", cursor)
        assert [each.id for each in found] == list(numbers)
        assert new_signals(place, "etl.done", cursor) == ([], cursor)


def test_task_that_an_engine_gave_up_opens_an_alert_at_once_though_nothing_of_penstock_runs(
    tmp_path: Path,
) -> None:
    with rig_of(tmp_path, 3) as rig:
        place, data = place_of(tmp_path), {"dag": "shop", "run": "monday", "task": "extract"}
        raise_signal(place, "airflow.failed", data, key="a", source="shop", actor=ACTOR)
        with place.opened() as project:
            [alert] = project.alerts.list().items
            assert (alert.rule, alert.source, alert.severity) == (
                "orchestrator-failed",
                "shop",
                "high",
            )
            assert alert.summary == "airflow: extract of shop monday has failed for good"
            assert not is_led(project), "it has resigned"

        assert rig.penstock("run", "shop").returncode == 0
        with place.opened() as project:
            assert not project.alerts.list().items, "a good run has resolved it"


# What sensors ask.


def test_files_are_new_once_when_they_are_settled(tmp_path: Path) -> None:
    now = 1_000_000.0
    _file(tmp_path / "a.csv", now - 60)
    first = new_files(tmp_path, "*.csv", None, now)
    assert first.paths == ["a.csv"]
    _file(tmp_path / "b.csv", now - 1)
    assert new_files(tmp_path, "*.csv", first.cursor, now).paths == []
    later = new_files(tmp_path, "*.csv", first.cursor, now + 60)
    assert later.paths == ["b.csv"]
    assert new_files(tmp_path, "*.csv", later.cursor, now + 60).paths == []
    _file(tmp_path / "a.csv", now + 10, "changed")
    again = new_files(tmp_path, "*.csv", later.cursor, now + 60)
    assert again.paths == ["a.csv"]
    assert len({first.key, later.key, again.key}) == 3


def _file(path: Path, at: float, text: str = "x") -> None:
    path.write_text(text)
    os.utime(path, (at, at))


def test_runs_that_end_are_told_once(tmp_path: Path) -> None:
    with rig_of(tmp_path, 2):
        place = place_of(tmp_path)
        _, cursor = newly_ended_runs(place, "shop", None)
        run_id = prepared(place)
        assert newly_ended_runs(place, "shop", cursor) == ([], cursor)
        drained(place, run_id)
        found, cursor = newly_ended_runs(place, "shop", cursor)
        assert [(run.id, run.state) for run in found] == [(run_id, "completed")]
        assert newly_ended_runs(place, "shop", cursor)[0] == []


def test_budget_is_told_when_it_has_reset(tmp_path: Path) -> None:
    spending = STEPS.replace("    if page", "    ctx.spend(requests=1)\n    if page", 1)
    slow = {**source(6), "limits": {"concurrency": 1}}
    with Rig(tmp_path, {"shop": {**slow, "budget": {"requests": "2/d"}}}, spending):
        place = place_of(tmp_path)
        first = reset_budgets(place, "shop", None)
        assert first.names == []
        run_id = prepared(place)
        drain_stage(place, run_id, "discover", actor=ACTOR)
        with pytest.raises(TaskFailed, match="budget"):
            drain_stage(place, run_id, "extract", partial="failed", actor=ACTOR)
        spent = reset_budgets(place, "shop", first.cursor)
        assert spent.names == []

        configured(tmp_path, sources={"shop": {**slow, "budget": {"requests": "9/d"}}})
        reset = reset_budgets(place, "shop", spent.cursor)
        assert reset.names == ["shop: requests a day"]
        assert reset_budgets(place, "shop", reset.cursor).names == []


def test_checks_look_at_the_schema_at_rejects_and_at_alerts(tmp_path: Path) -> None:
    (tmp_path / "page.json").write_text('{"type": "object", "required": ["number"]}')
    with rig_of(tmp_path, 3) as rig:
        configured(tmp_path, collections={"page": {"schema": "page.json"}})
        place = place_of(tmp_path)
        run_id = prepared(place)
        drained(place, run_id)
        [page, report] = states_of(place, run_id, "shop", ["page", "report"])
        assert {check.name: check.passed for check in page.checks} == {
            "schema": True,
            "rejects": True,
            "alerts": True,
        }
        assert [check.name for check in report.checks] == ["rejects", "alerts"]
        assert (page.metadata["records"], page.metadata["run"]) == (3, run_id)

        (tmp_path / "page.json").write_text('{"type": "object", "required": ["price"]}')
        [page] = states_of(place, run_id, "shop", ["page"])
        [schema] = [check for check in page.checks if check.name == "schema"]
        assert (schema.passed, schema.is_error) == (False, True)
        assert schema.metadata["misfits"] == 3
        rig.assert_sound()


def test_backfill_is_prepared_with_its_days(tmp_path: Path) -> None:
    with days_rig(tmp_path) as rig:
        place = place_of(tmp_path)
        days = ("2024-01-01", "2024-01-03")
        run_id = prepare_run(place, "prices", "b", between=days, actor=ACTOR)
        for stage in rig_stages(place, run_id):
            drain_stage(place, run_id, stage, actor=ACTOR)
        rig.assert_records({f"AAPL 2024-01-0{day}" for day in (1, 2, 3)}, "day")


def rig_stages(place: Place, run_id: int) -> list[str]:
    with place.opened() as project:
        return [stage.name for stage in project.drains.stages(run_id)]
