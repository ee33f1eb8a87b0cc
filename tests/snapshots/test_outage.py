"""Snapshots that are away for minutes, seen from a whole worker on virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.http.network import RawResponse, Request
from penstock.jobs.job import JobState
from penstock.project import Project
from penstock.snapshots import Capture, SegmentPlace, SnapshotsAway
from penstock.snapshots.directory import DirectorySnapshots
from penstock.store.jobs import JobFilter
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

PAGES = 40
AT_ONCE = 4
BEGINS_S = 2.0
LASTS_S = 600.0
CONFIG = f"""
project: outage
sources:
  shop:
    pipeline: outage_steps:shop
    timeout: 30s
    fetch: {{allow_private: true, robots: false}}
    limits: {{concurrency: {AT_ONCE}}}
"""
STEPS = f"""
import asyncio

from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    for number in range({PAGES}):
        yield {{"url": f"http://shop.example/{{number}}"}}


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    await asyncio.sleep(1.0)
    response = await ctx.fetch(page["url"])
    ctx.save("page", key=response.text, data={{}})
"""


async def site(request: Request) -> RawResponse:
    return RawResponse(200, {}, request.url.encode())


def test_an_outage_longer_than_every_timeout_costs_no_try_and_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "outage_steps.py").write_text(STEPS)
    clock, network = VirtualClock(), ScriptedNetwork(site)
    real, asked = DirectorySnapshots.append, [0]

    def away(self: DirectorySnapshots, captures: list[Capture]) -> list[SegmentPlace]:
        if BEGINS_S <= clock.monotonic() < BEGINS_S + LASTS_S:
            asked[0] = len(network.requests)
            raise SnapshotsAway("can't write snapshots: the object store can't be reached")
        return real(self, captures)

    monkeypatch.setattr(DirectorySnapshots, "append", away)
    project = Project.load(tmp_path)
    with Simulation(project, network, seed=1, clock=clock) as simulation:
        run_id = project.run("shop")
        simulation.run()
        assert clock.monotonic() > LASTS_S
        assert project.require_run(run_id).state == "completed"
        jobs = project.connection.jobs.find(JobFilter(limit=1000))
        assert {job.state for job in jobs} == {JobState.SUCCEEDED}
        assert [job.id for job in jobs if job.tries or job.deaths] == []
        assert len(project.connection.records.of("page", limit=1000)) == PAGES
    project.close()
    # Whoever was under way when it began has fetched in vain; nobody was sent out after that.
    before = BEGINS_S * AT_ONCE
    assert asked[0] <= before + 2 * AT_ONCE
    assert len(network.requests) <= PAGES + 2 * AT_ONCE
