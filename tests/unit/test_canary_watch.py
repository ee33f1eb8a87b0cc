"""The watch over canaries: alerts and differences stop them, and a rollback leaves nothing of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import Project
from penstock.gates.capacity import Capacity, DrainScope
from penstock.jobs.canary.guardrails import Limits
from penstock.jobs.effects import Effects, Mark, Save
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import RunKind
from penstock.project.canary_watch import CanaryWatch
from penstock.store.alert_rows import Opening
from penstock.store.canaries import CanaryRow, CanaryShare, CanarySource

STEPS = """
from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    yield {"number": 1}


@shop.step(after="discover", unit="page", key="number")
async def extract(page, ctx):
    ctx.save("product", key=str(page["number"]), data={})
"""
R = "e" * 64
PAGES = 200


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "watched_steps.py").write_text(STEPS)
    config = {"project": "watched", "sources": {"shop": {"pipeline": "watched_steps:shop"}}}
    (tmp_path / "penstock.yaml").write_text(json.dumps(config))
    with Project.load(tmp_path) as made:
        yield made
    sys.modules.pop("watched_steps", None)


def begin(project: Project, share: CanaryShare, **limits: Any) -> int:
    source = project.source("shop")
    graph = project.graph(source)
    plans = {kind: graph.plan(source.priority, RunKind(kind)) for kind in ("full", "incremental")}
    text = msgspec.json.encode(plans).decode()
    rows = [CanarySource(project.source_ids["shop"], True, "v2", text)]
    about = (R, share, 50.0, "salt", Limits(**limits), rows, "test", "")
    return project.connection.canaries.begin(*about)


def look(project: Project) -> CanaryRow:
    CanaryWatch(project, project.connection).look()
    [row] = project.connection.canaries.newest(1)
    return row


def settle(project: Project, run_id: int, effects: Effects, scope: DrainScope | None) -> None:
    """Perform the first job of a run, as a worker of the release or of the project does."""
    store, name = project.connection, f"w{run_id}"
    store.workers.register(name, "here", 1, "test")
    turn = store.turn(name, [], Capacity(1, scope=scope), project.limits())
    [job] = turn.claimed
    end = Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=effects)
    store.turn(name, [end], Capacity(0), project.limits())


def wrote(cursor: int, key: str, data: dict[str, Any]) -> Effects:
    save = Save("product", key, msgspec.json.encode(data), None, "replace")
    return Effects(saves=[save], marks=[Mark("all", msgspec.json.encode(cursor))])


def open_alert(project: Project, severity: str) -> None:
    opening = Opening("failing-jobs", project.source_ids["shop"], severity, "pages fail")
    assert project.connection.alerts.open(opening) is not None


def test_alert_on_its_source_stops_a_canary(project: Project) -> None:
    begin(project, "pages")
    assert look(project).state == "active"
    open_alert(project, "high")
    assert look(project).state == "stopping"
    row = look(project)
    assert (row.state, row.end_reason) == ("stopped", "alert 1 (failing-jobs) opened on shop")


@pytest.mark.parametrize(("least", "severity"), [("critical", "high"), ("none", "critical")])
def test_alerts_that_are_not_asked_for_stop_nothing(
    project: Project, least: str, severity: str
) -> None:
    begin(project, "pages", alerts=least)
    open_alert(project, severity)
    assert look(project).state == "active"


def test_alert_from_before_it_began_stops_nothing(project: Project) -> None:
    open_alert(project, "critical")
    begin(project, "pages")
    assert look(project).state == "active"


def test_rollback_of_whole_runs_brings_records_and_checkpoints_back_and_runs_again(
    project: Project,
) -> None:
    store = project.connection
    first = project.run("shop")
    settle(project, first, wrote(10, "a", {"price": 1}), None)
    canary_id = begin(project, "sources")
    for cursor in (20, 30):
        run = project.run("shop")
        its = wrote(cursor, "a", {"price": -cursor})
        settle(project, run, its, DrainScope(run))
    assert store.checkpoints.cursors(project.source_ids["shop"]) == {"all": 30}

    assert store.canaries.stop(canary_id, "active", "test", "wrong prices")
    assert look(project).state == "stopped"

    [record] = store.records.of("product", limit=10)
    assert record.data == {"price": 1}
    assert store.checkpoints.cursors(project.source_ids["shop"]) == {"all": 10}
    runs = store.runs.newest("shop", False, 10)
    by_it = [run for run in runs if run.options.by_release]
    controls = [run for run in runs if run.options.is_staged]
    assert {run.state for run in by_it} == {"completed"}
    assert {run.state for run in controls} == {"cancelled"}
    [again] = [run for run in runs if run.state == "queued"]
    assert (again.kind, again.options.canary, again.options.by_release) == ("full", None, "")
    assert look(project).state == "stopped"
    assert len(store.runs.newest("shop", False, 10)) == len(runs)


def perform(
    project: Project, run_id: int, data: dict[str, Any], scope: DrainScope | None = None
) -> None:
    """Perform a run of many pages, each with a record of this data."""
    store, name = project.connection, f"w{run_id}"
    store.workers.register(name, "here", 1, "test")
    ends: list[Settlement] = []
    while claimed := store.turn(name, ends, Capacity(50, scope=scope), project.limits()).claimed:
        ends = []
        for job in claimed:
            if job.stage == "extract":
                save = Save("product", job.key, msgspec.json.encode(data), None, "replace")
                effects = Effects(saves=[save])
            else:
                pages = [NewJob("extract", f"{each}", b"null", 5) for each in range(PAGES)]
                effects = Effects(children=pages)
            ends.append(Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=effects))
    store.turn(name, ends, Capacity(0), project.limits())


def shared(project: Project, data: dict[str, Any]) -> None:
    """A run of the project's own files, which changes nothing, and the run of the release."""
    perform(project, project.run("shop"), {"price": 1})
    [its] = project.connection.followers.start("test")
    perform(project, its, data, DrainScope(its))


@pytest.mark.parametrize(
    ("most", "price", "state"),
    [(0.2, 2, "stopping"), (0.2, 1, "active"), (None, 2, "active"), (1.0, 2, "active")],
)
def test_canary_that_changes_more_records_than_it_may_is_stopped(
    project: Project, most: float | None, price: int, state: str
) -> None:
    perform(project, project.run("shop"), {"price": 1})
    begin(project, "pages", diff=most, min_pages=60)
    shared(project, {"price": price})

    row = look(project)

    assert row.state == state
    assert row.look is not None
    assert row.look.diff == (1.0 if price == 2 else 0.0)
    if state == "stopping":
        assert row.end_reason == "100.0% of the records differ, 20.0% may"
        assert look(project).state == "stopped"
        records = project.connection.records.of("product", limit=PAGES)
        assert {record.data["price"] for record in records} == {1}
