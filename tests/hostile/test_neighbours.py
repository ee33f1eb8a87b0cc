"""One source can't hurt another, not by what it serves either: beside each, a healthy one keeps its pace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clocked import in_time
from tests.journeys.rig import CountingSite, Rig, counting_site, source_of, until

ROUNDS = 3
PAGES = 60
KEPT = 0.9
HOSTILE = ("robots", "xml", "charset")
STEPS = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run", timeout="1h")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    return {"length": len(response.text)}
"""


@pytest.fixture(scope="module")
def site() -> Iterator[CountingSite]:
    with counting_site() as found:
        yield found


@pytest.fixture(scope="module")
def harmful() -> Iterator[CountingSite]:
    server = Path(__file__).with_name("hostile_server.py")
    with subprocess.Popen(
        [sys.executable, str(server)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield CountingSite(int(process.stdout.readline()), "127.0.1.1")
        process.stdin.close()


def hostile_source(harmful: CountingSite, kind: str) -> dict[str, Any]:
    return {
        "pipeline": "steps:pages",
        "params": {"sitemap": f"{harmful.url}/{kind}/index"},
        "fetch": {
            "allow_private": True,
            "robots": kind == "robots",
            "hosts": ["*"],
        },
        "limits": {"concurrency": 4},
        "breaker": False,
    }


@pytest.mark.torture
@pytest.mark.parametrize("kind", HOSTILE)
def test_healthy_source_keeps_its_pages_beside_one_that_serves_harm(
    tmp_path: Path, site: CountingSite, harmful: CountingSite, kind: str
) -> None:
    sources = {
        "healthy": source_of(site, PAGES, page_ms=150),
        "hostile": hostile_source(harmful, kind),
    }
    with Rig(tmp_path, sources, STEPS, worker={"grace": "1s"}) as rig:
        process = rig.start("up")
        alone, beside, served = [], [], []
        for _ in range(ROUNDS):
            alone.append(pace_of(rig))
            with at_work(rig, harmful, kind) as answers:
                beside.append(pace_of(rig))
            served.append(answers())
        print(f"{kind}: alone {alone}, beside {served} answers of it {beside} pages a second")
        in_time(1 / max(beside), 1 / (KEPT * max(alone)))
        assert rig.events("worker.buried") == []
        process.terminate()
        assert process.wait(timeout=120) == 0


@contextmanager
def at_work(rig: Rig, harmful: CountingSite, kind: str) -> Iterator[Callable[[], int]]:
    """While the hostile source runs; answers with how often its host has been asked since."""
    path = "robots.txt" if kind == "robots" else kind
    before = harmful.counts()[path]
    [harm] = rig.enqueue("hostile")
    until(lambda: harmful.counts()[path] > before + 2, "the hostile one is at work")
    yield lambda: harmful.counts()[path] - before
    assert not rig.run(harm).is_ended, "and it was until now"
    rig.store.cancel_run(harm, "test", "enough")
    until(lambda: rig.run(harm).is_ended, "it is at rest")


def pace_of(rig: Rig) -> float:
    [run_id] = rig.enqueue("healthy")
    until(lambda: rig.run(run_id).is_ended, "the healthy one has ended")
    run = rig.run(run_id)
    assert run.state == "completed"
    assert run.pages_done == PAGES
    return round(run.pages / ((run.finished_at or 0.0) - (run.started_at or 0.0)), 1)
