"""A program runs what the command line runs: the service, and runs until their end."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from penstock import Project
from penstock.errors import Refused
from tests.journeys.rig import Rig

STEPS = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
def discover(ctx):
    yield {"number": 1}


@pages.step(after="discover", unit="page", key="number")
def keep(page, ctx):
    ctx.save("page", key=str(page["number"]), data={})
"""


def test_a_program_stops_the_service_finishes_a_run_and_runs_until_idle(tmp_path: Path) -> None:
    with (
        Rig(tmp_path, {"a": {"pipeline": "steps:pages"}}, STEPS),
        Project.load(tmp_path) as project,
    ):
        first, second = (project.runs.start("a", new=True).run for _ in range(2))
        assert first is not None
        assert second is not None
        stopping = threading.Event()

        stopped = project.service.up(on_begin=stopping.set, stopping=stopping)
        assert (stopped.reason, stopped.ended) == ("stopped", {})
        assert project.service.holder() is None

        [report] = project.runs.finish([first.id])
        assert (report.run, report.state) == (first.id, "completed")

        happened: list[str] = []
        idle = project.service.up(
            until_idle=True, on_activity=lambda each: happened.append(each.event)
        )
        # The one that was finished alone may have been helped to its end, too.
        assert idle.reason == "idle"
        assert [each.state for each in project.runs.each()] == ["completed", "completed"]
        assert happened.count("run.completed") == idle.ended.get("completed", 0)

        [[watched, other]] = project.runs.watch([second.id, first.id])
        assert (watched.run, watched.state, other.run) == (second.id, "completed", first.id)


def test_what_needs_a_shared_store_is_refused_before_it_begins(tmp_path: Path) -> None:
    begun: list[str] = []

    def begin() -> None:
        begun.append("begun")

    with (
        Rig(tmp_path, {"a": {"pipeline": "steps:pages"}}, STEPS),
        Project.load(tmp_path) as project,
    ):
        for act in (project.service.work, project.service.schedule):
            with pytest.raises(Refused) as refused:
                act(on_begin=begin)
            assert refused.value.code == "store_not_shared"
            assert str(refused.value.remedy) == "project.service.up()"
        with pytest.raises(Refused) as refused:
            project.service.up(workers=2, on_begin=begin)
    assert refused.value.code == "one_writer"
    assert begun == []
