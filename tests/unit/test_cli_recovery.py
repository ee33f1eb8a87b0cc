"""The commands of recovery say what they would do, refuse what loses something, and answer programs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock import Project
from penstock.app.progress import RunProgress
from penstock.app.views.progress import run_report
from penstock.cli import exits, main
from penstock.cli.commands import run
from penstock.cli.render.first_errors import tell_first_errors
from penstock.cli.render.output import Output
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Mark
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.outcome import Flush, Settlement
from penstock.store.checkpoints import Checkpoints

MODULE = "recovered_pipelines"
PIPELINES = """
from penstock import Pipeline

prices = Pipeline("prices")


@prices.step(unit="run", timeout="45s")
def begin(ctx):
    pass


@prices.step(unit="page", windows=True)
def fetch(window, ctx):
    pass


ticks = Pipeline("ticks")


@ticks.step(unit="stream")
async def listen(ctx):
    pass
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    (tmp_path / f"{MODULE}.py").write_text(PIPELINES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "penstock.yaml").write_text(
        f"sources:\n  prices:\n    pipeline: {MODULE}:prices\n"
        "    backfill: {window: 1d, partitions: [AAPL, MSFT]}\n"
        f"  ticks:\n    pipeline: {MODULE}:ticks\n"
    )
    made = Project.load(tmp_path)
    made.connection.workers.register("w", "here", 1, "1")
    yield made
    made.close()
    sys.modules.pop(MODULE, None)


def ended(project: Project, state: JobState = JobState.SUCCEEDED, **about: Any) -> int:
    """A run of prices whose first job ended like this; answers with the job."""
    project.run("prices")
    [job] = project.connection.turn("w", [], Capacity(1), project.limits()).claimed
    end = Settlement(job.id, job.attempt, state, **about)
    project.connection.turn("w", [end], Capacity(0), project.limits())
    return job.id


def quarantined_together(project: Project, number: int) -> tuple[int, list[int]]:
    """A run of prices with so many jobs in quarantine, each for a cause of its own."""
    pages = [NewJob("begin", f"page {each}", b"null") for each in range(number)]
    run_id = project.run("prices")
    [root] = project.connection.turn("w", [], Capacity(1), project.limits()).claimed
    ends = [Settlement(root.id, root.attempt, JobState.SUCCEEDED, effects=Effects(children=pages))]
    found: list[int] = []
    while claimed := project.connection.turn("w", ends, Capacity(9), project.limits()).claimed:
        found += [job.id for job in claimed]
        ends = [
            Settlement(
                job.id, job.attempt, JobState.QUARANTINED, spends_try=True, reason="data",
                error=f"cause of {job.key}", cause=job.key,
            )
            for job in claimed
        ]  # fmt: skip
    return run_id, found


def test_all_leaves_out_what_has_no_run_of_that_kind(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--all", "--detach"]) == exits.DONE

    assert "left out: ticks: pipeline 'ticks' has no step" in capsys.readouterr().err
    assert [row.source for row in project.connection.runs.newest()] == ["prices"]


def test_source_that_can_not_run_keeps_the_others_of_its_command_from_starting(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "prices", "ticks", "--detach"]) == exits.USAGE

    assert project.connection.runs.newest() == []


def test_rewind_that_would_leave_something_out_is_refused_unless_it_is_forced(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(project, effects=Effects(marks=[Mark("AAPL", b"5")]))
    words = ["checkpoint", "rewind", "prices", "AAPL", "--yes", "--to"]

    assert main([*words, "9"]) == exits.REFUSED

    assert "what lies between would never be fetched" in capsys.readouterr().err
    assert main([*words, "3"]) == exits.DONE
    assert main([*words, "9", "--force"]) == exits.DONE
    [row] = project.connection.checkpoints.all(project.source_ids["prices"])
    assert row.cursor == 9


@pytest.mark.parametrize(
    ("cursor", "why"),
    [
        ("", "it is empty"),
        ("{}", "it is empty"),
        ('{"a": 1}', "it is an object, and the checkpoint"),
    ],
)
def test_rewind_to_nothing_or_to_another_kind_is_refused_unless_it_is_forced(
    project: Project, capsys: pytest.CaptureFixture[str], cursor: str, why: str
) -> None:
    ended(project, effects=Effects(marks=[Mark("AAPL", b"5")]))
    words = ["checkpoint", "rewind", "prices", "AAPL", "--yes", "--to", cursor]

    assert main(words) == exits.REFUSED

    assert why in capsys.readouterr().err
    assert main([*words, "--force"]) == exits.DONE


def test_rewind_of_a_text_stays_a_text(project: Project) -> None:
    ended(project, effects=Effects(marks=[Mark("AAPL", b'"20240601"')]))

    assert main(["checkpoint", "rewind", "prices", "AAPL", "--yes", "--to", "20240501"]) == 0

    [row] = project.connection.checkpoints.all(project.source_ids["prices"])
    assert row.cursor == "20240501"


def test_rewind_of_what_nobody_has_counted_says_how_many_moves_it_goes_back(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    for cursor in (b"3", b"5", b"7"):
        ended(project, effects=Effects(marks=[Mark("AAPL", cursor)]))
    words = ["checkpoint", "rewind", "prices", "AAPL", "--dry-run", "--to", "4"]

    assert main(words) == exits.DONE

    assert "would fetch again what 2 moves of it brought" in capsys.readouterr().out
    assert main([*words, "--json"]) == exits.DONE
    told = json.loads(capsys.readouterr().out)
    assert (told["units"], told["moves"]) == (0, 2)


def test_rewind_over_pages_promises_no_more_than_an_upper_bound(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for cursor in (b"3", b"5"):
        ended(project, effects=Effects(marks=[Mark("AAPL", cursor)]))
    monkeypatch.setattr(Checkpoints, "units_since", lambda *_: 14)

    assert main(["checkpoint", "rewind", "prices", "AAPL", "--dry-run", "--to", "4"]) == exits.DONE

    assert "would fetch up to 14 units again" in capsys.readouterr().out


def test_partition_that_is_not_configured_is_noted(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["backfill", "prices", "--from", "2024-01-01", "--to", "2024-01-02", "--plan"]

    assert main([*words, "--partition", "AAPLE"]) == exits.DONE
    assert "no partition 'AAPLE' in penstock.yaml; did you mean 'AAPL'?" in capsys.readouterr().err
    assert main([*words, "--partition", "MSFT"]) == exits.DONE
    assert "no partition" not in capsys.readouterr().err


def test_plan_names_what_is_missing_by_the_backfill_s_own_days(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project.settings.file
    file.write_text(file.read_text().replace("window: 1d", "window: 1d, timezone: Asia/Tokyo"))
    ended(project)
    words = ["backfill", "prices", "--from", "2024-01-01", "--to", "2024-01-02"]

    assert main([*words, "--missing", "--plan", "--partition", "AAPL"]) == exits.DONE

    told = capsys.readouterr().out.splitlines()
    assert "range       2024-01-01 to 2024-01-02, Asia/Tokyo" in told
    assert "missing     AAPL: 2024-01-01 to 2024-01-02" in told


def test_acts_on_the_quarantine_answer_programs(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    _, [first, second] = quarantined_together(project, 2)

    def told(*words: str) -> Any:
        assert main(["quarantine", *words, "--json"]) == exits.DONE
        return json.loads(capsys.readouterr().out)

    one = ("--job", str(first))
    assert told("note", str(first), "asked") == {"job": first, "note": "asked"}
    assert told("release", *one, "--dry-run") == {"released": 0, "jobs": 1, "is_done": False}
    assert told("release", *one, "--yes") == {"released": 1, "jobs": 1, "is_done": True}
    assert told("discard", "--all", "--yes") == {"discarded": 1, "jobs": 1, "is_done": True}
    assert project.require_job(second).state is JobState.CANCELLED


def test_days_before_the_calendar_are_refused(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kpis", "--days", "36500", "--json"]) == exits.DONE
    assert main(["kpis", "--days", "9223372036854775807"]) == exits.USAGE
    assert "is more than a hundred years (36500)" in capsys.readouterr().err


def test_difference_that_could_not_be_written_is_not_computed(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(project)

    assert main(["replay", "1", "--html", "nowhere/diff.html"]) == exits.USAGE

    assert "there is no folder nowhere" in capsys.readouterr().err
    assert len(project.connection.runs.newest()) == 1


def test_explain_names_a_job_that_is_due_as_the_next_turn_finds_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(project, JobState.WAITING, delay_s=0.0, reason="again")

    assert main(["explain", "prices"]) == exits.DONE

    assert "job 1 (begin root, queued)" in capsys.readouterr().out


def test_a_gate_passes_or_blocks_whatever_open_means_to_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "prices", "--detach"]) == exits.DONE
    assert main(["breaker", "open", "prices", "--for", "1h", "--yes"]) == exits.DONE
    capsys.readouterr()

    assert main(["explain", "prices"]) == exits.DONE

    gates = {
        line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines()[3:15]
    }
    assert gates["breaker"] == "blocks"
    assert gates["held"] == "passes"
    assert set(gates.values()) == {"now", "passes", "blocks"}
    assert main(["explain", "prices", "--json"]) == exits.DONE
    told = {each["gate"]: each for each in json.loads(capsys.readouterr().out)["gates"]}
    assert (told["breaker"]["passes"], told["breaker"]["is_open"]) == (False, False)


def test_the_summary_of_a_run_has_the_first_error_of_each_cause_and_what_became_of_records(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    about: dict[str, Any] = {"spends_try": True, "reason": "data"}
    job = ended(project, JobState.QUARANTINED, error="no .price in it", cause="no price", **about)
    [row] = project.connection.runs.newest()

    args = argparse.Namespace(out=Output(), json=False)
    run._tell(project, [run_report(row, project.connection.now())], args)

    told = capsys.readouterr().out
    assert {"inserted", "updated", "unchanged"} <= set(told.splitlines()[0].split())
    assert f"  data: no .price in it (1 job, the first: penstock jobs {job})\n" in told
    assert f"  all of them: penstock quarantine list --run {row.id}\n" in told
    assert main(["runs", "show", str(row.id)]) == exits.DONE
    assert "  data: no .price in it (1 job" in capsys.readouterr().out


def test_a_summary_with_many_causes_says_that_there_are_more(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id, _ = quarantined_together(project, 7)

    tell_first_errors(project, run_id, Output())

    *errors, last = capsys.readouterr().out.splitlines()
    assert len(errors) == 5
    assert last == f"  more causes, and all of them: penstock quarantine list --run {run_id}"


def test_progress_of_a_run_without_pages_says_how_far_its_checkpoint_has_come(
    project: Project,
) -> None:
    run_id = project.run("prices")
    [job] = project.connection.turn("w", [], Capacity(1), project.limits()).claimed
    marks = Effects(marks=[Mark("AAPL", b'{"page":7}')])
    project.connection.turn("w", [Flush(job.id, job.attempt, marks)], Capacity(0), project.limits())

    [report] = RunProgress(project, [run_id]).look()
    assert report.cursor == '{"page":7}'


def test_progress_asks_the_store_once_per_look_for_all_runs(project: Project) -> None:
    runs = [project.run("prices") for _ in range(5)]
    progress = RunProgress(project, runs)
    progress.look()  # the cursors of runs without pages are due again in a second
    asked: list[str] = []
    file = project.settings.root / "penstock.db"
    [connection] = [each for each in apsw.connections() if Path(each.filename) == file]
    connection.exec_trace = lambda _, sql, __: not asked.append(sql)  # type: ignore[func-returns-value]

    found = progress.look()

    assert [each.run for each in found] == runs
    assert len(asked) == 1


def test_a_job_says_under_which_timeout_retry_class_and_budgets_it_is_performed(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (project.settings.root / "penstock.yaml").read_text()
    limits = "    retry: {class: provider-safe, tries: 9}\n    budget: {requests: 100/d}\n"
    (project.settings.root / "penstock.yaml").write_text(
        "budget: {bytes: 5MB/d}\n" + text.replace("  ticks:\n", f"{limits}  ticks:\n", 1)
    )
    job = ended(project, JobState.QUARANTINED, error="no", reason="data", spends_try=True)

    for words in (["jobs", str(job)], ["explain", "--job", str(job)]):
        assert main([*words, "--json"]) == exits.DONE
        terms = json.loads(capsys.readouterr().out)["terms"]
        assert (terms["timeout_s"], terms["retry"]["name"], terms["retry"]["tries"]) == (
            *(45.0, "provider-safe"),
            9,
        )
        assert [(each["scope"], each["measure"]) for each in terms["budgets"]] == [
            ("project", "bytes"),
            ("source:prices", "requests"),
        ]
        assert main(words) == exits.DONE
        told = capsys.readouterr().out
        assert "timeout      45 s an attempt\n" in told
        assert (
            "retry class  provider-safe: 9 tries, 1 spent; waits 10 s at first, 1 h at most" in told
        )
        assert "budget       100 requests a day of prices, 100 requests left\n" in told
