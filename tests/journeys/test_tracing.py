"""Traces of the real command, at a collector that decodes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.rig import Rig, counting_site
from tests.otlp_receiver import Collector, Span, collecting

TRACE, OUTSIDE = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{OUTSIDE}-01"
TOKEN = "the-token-of-the-collector"
STEPS = """
import sys
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
def discover(ctx):
    for number in range(3):
        yield {"url": f"{ctx.params['site']}/page/{number}/" + ctx.params["token"]}
    yield {"url": f"{ctx.params['site']}/flaky/1"}


@pages.step(after="discover", unit="page", key="url", retry="fast")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    yield {"path": response.text}


@pages.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=page["path"], data={"traces": "opentelemetry" in sys.modules})
"""
HOOK = "import os, sys; open(sys.argv[1], 'w').write(os.environ['TRACEPARENT'])"


def a_rig(folder: Path, site: str, **top: Any) -> Rig:
    source = {
        "pipeline": "steps:pages",
        "params": {"site": site, "token": "${SITE_TOKEN}"},
        "schedule": {"signal": "go"},
        "fetch": {"allow_private": True},
        "limits": {"rate": "1000/s"},
    }
    rig = Rig(folder, {"shop": source}, STEPS)
    config = json.loads((folder / "penstock.yaml").read_text())
    (folder / "penstock.yaml").write_text(json.dumps({**config, **top}))
    (folder / ".env").write_text(f"SITE_TOKEN=a-secret-of-the-site\nOTEL_TOKEN={TOKEN}\n")
    (folder / ".env").chmod(0o600)
    return rig


def by_id(spans: list[Span]) -> dict[str, Span]:
    return {span.span_id: span for span in spans}


@dataclass(frozen=True)
class Traced:
    """What a collector got of one run, and what the run's hook was told."""

    collector: Collector
    told: str


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    """One run of a source, by a signal that brings a trace from outside."""
    folder = tmp_path_factory.mktemp("traced")
    with collecting() as collector:
        return Traced(collector, told_by_hook(folder, collector))


def told_by_hook(folder: Path, collector: Collector) -> str:
    told = folder / "told"
    command = {"command": ["python3", "-c", HOOK, str(told)], "on": ["completed"]}
    tracing = {"endpoint": collector.url, "headers": {"authorization": "Bearer ${OTEL_TOKEN}"}}
    with (
        counting_site() as site,
        a_rig(folder, site.url, tracing=tracing, hooks=[command]) as rig,
    ):
        data = json.dumps({"traceparent": TRACEPARENT})
        assert rig.penstock("signal", "go", "--data", data).returncode == 0
        done = rig.penstock("up", "--until-idle")
        assert done.returncode == 0, done.stderr
        [run] = rig.store.runs.newest(limit=10)
        assert run.state == "completed", run
    return told.read_text()


def test_a_run_is_one_trace_of_jobs_attempts_and_fetches(traced: Traced) -> None:
    collector, told = traced.collector, traced.told
    spans = by_id(collector.spans)
    [run] = collector.named("run ")
    assert (run.trace_id, run.parent_id) == (TRACE, OUTSIDE)
    assert told == f"00-{TRACE}-{run.span_id}-01"
    assert {span.trace_id for span in collector.spans} == {TRACE}
    assert len(spans) == len(collector.spans)

    jobs, attempts = collector.named("job "), collector.named("attempt ")
    fetches = collector.named("fetch ")
    assert {job.parent_id for job in jobs} == {run.span_id}
    assert sorted(job.name for job in jobs) == sorted(
        ["job discover", *["job extract"] * 4, *["job persist"] * 4]
    )
    assert all(spans[attempt.parent_id].name.startswith("job ") for attempt in attempts)
    assert all(spans[fetch.parent_id].name == "attempt extract" for fetch in fetches)
    parents = {job.name: {spans[link].name for link in job.links} for job in jobs}
    assert parents == {
        "job discover": set(),
        "job extract": {"job discover"},
        "job persist": {"job extract"},
    }


def test_what_fails_is_marked_and_secrets_are_masked(traced: Traced) -> None:
    collector = traced.collector
    spans = by_id(collector.spans)
    failed = [span for span in collector.named("attempt ") if span.status == 2]
    assert [span.attributes["penstock.attempt.state"] for span in failed] == ["waiting"]
    again = [s for s in collector.named("attempt ") if s.attributes["penstock.attempt"] == 2]
    [job] = {span.parent_id for span in again}
    assert spans[job].status == 1
    assert spans[job].started_ns <= failed[0].started_ns < failed[0].ended_ns < again[0].started_ns
    [fetch] = [span for span in collector.named("fetch ") if span.status == 2]
    assert fetch.parent_id == failed[0].span_id
    assert "a-secret-of-the-site" not in str(collector.spans)
    assert {headers["authorization"] for headers in collector.headers} == {f"Bearer {TOKEN}"}
    [project] = {span.resource["service.name"] for span in collector.spans}
    assert project == "journey"


def test_without_an_endpoint_nothing_of_opentelemetry_is_loaded(tmp_path: Path) -> None:
    with counting_site() as site, a_rig(tmp_path, site.url) as rig:
        done = rig.penstock("run", "shop")
        assert done.returncode == 0, done.stderr
        rows = rig.store.records.of("page", limit=10)
    assert [row.data["traces"] for row in rows] == [False] * 4


def test_a_collector_that_is_down_costs_traces_and_nothing_else(tmp_path: Path) -> None:
    with collecting() as collector:
        address = collector.url  # nobody listens there when it is closed
    with (
        counting_site() as site,
        a_rig(tmp_path, site.url, tracing={"endpoint": address}) as rig,
    ):
        done = rig.penstock("run", "shop")
        assert done.returncode == 0, done.stderr
        [run] = rig.store.runs.newest(limit=10)
    assert (run.state, run.inserted) == ("completed", 4)
