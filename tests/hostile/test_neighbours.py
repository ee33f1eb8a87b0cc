"""One source can't hurt another, not by what it serves either: beside each, a healthy one keeps its pace."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from penstock.http import network, pace, response
from penstock.http.encoding import Body
from penstock.http.failures import FetchError
from penstock.http.feed import feed_entries
from penstock.http.network import Unpacking
from penstock.http.pace import BURST_S, SHARE
from penstock.http.response import Response
from penstock.http.sitemap import sitemap_urls
from penstock.testing import VirtualClock, VirtualLoop
from tests.clocked import in_time
from tests.hostile import hostile_server
from tests.journeys.rig import CountingSite, Rig, counting_site, source_of, until

ROUNDS = 3
PAGES = 60
KEPT = 0.9
HOSTILE = ("robots", "xml", "line", "feed", "bomb", "charset", "headers")
STEPS = """
from penstock import Pipeline

pages = Pipeline("pages")
feeds = Pipeline("feeds")


@pages.step(unit="run", timeout="1h")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    return {"length": len(response.text)}


@feeds.step(unit="run", timeout="1h")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@feeds.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    async for entry in ctx.feed(page["url"]):
        pass
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
        "pipeline": "steps:feeds" if kind == "feed" else "steps:pages",
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
        assert rig.events("worker.reaped") == []
        process.terminate()
        assert process.wait(timeout=120) == 0


class CpuClock(VirtualClock):
    """Runs with the CPU time of this thread and jumps over sleeps: a busy machine is no matter."""

    def monotonic(self) -> float:
        return super().monotonic() + thread_time()


async def read_page(get: Callable[[str], Awaitable[Response]]) -> None:
    """A packed page, of which a step wants the text."""
    page = await get("http://a/")
    unpacking = Unpacking(Body("gzip", 16_000_000))
    await unpacking.add(page.body)
    body = await unpacking.finish()
    assert len(replace(page, body=body).text) == len(body)


async def read_sitemap(get: Callable[[str], Awaitable[Response]]) -> None:
    with suppress(FetchError):
        async for _ in sitemap_urls(get, "http://a/"):
            pass


async def read_feed(get: Callable[[str], Awaitable[Response]]) -> None:
    with suppress(FetchError):
        async for _ in feed_entries(get, "http://a/"):
            pass


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (read_sitemap, "xml"),
        (read_sitemap, "line"),
        (read_sitemap, "lines"),
        (read_feed, "feed"),
        (read_page, "bomb"),
    ],
)
def test_others_get_their_turns_while_hostile_documents_are_read_without_end(
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Callable[[str], Awaitable[Response]]], Awaitable[None]],
    kind: str,
) -> None:
    body = hostile_server.document(kind)
    for module in (pace, network, response):
        monkeypatch.setattr(module, "perf_counter", thread_time)

    async def get(url: str) -> Response:
        return Response(url, url, 200, {"content-type": "text/plain"}, body, 0.0)

    async def without_end() -> None:
        while True:
            await read(get)

    alone, _ = turns_beside(lambda: asyncio.sleep(3600.0))
    beside, cpu_s = turns_beside(without_end)
    print(f"{alone} turns alone, {beside} beside {cpu_s:.2f} s of hostile work")
    assert beside >= KEPT * alone
    assert cpu_s >= SHARE / 4, "and it was at work"


def turns_beside(hostile: Callable[[], Awaitable[None]]) -> tuple[int, float]:
    """How often one who sleeps for 5 ms at a time wakes in a second, beside four that are hostile."""
    clock = CpuClock()

    async def count_turns() -> int:
        pace.rest_beside(lambda: True)
        pace.owe(BURST_S)
        four = [asyncio.ensure_future(hostile()) for _ in range(4)]
        turns, ends = 0, clock.monotonic() + 1.0
        while clock.monotonic() < ends:
            await asyncio.sleep(0.005)
            turns += 1
        for each in four:
            each.cancel()
        await asyncio.gather(*four, return_exceptions=True)
        return turns

    began = thread_time()
    with closing(VirtualLoop(clock)) as loop:
        return loop.run_until_complete(count_turns()), thread_time() - began


@contextmanager
def at_work(rig: Rig, harmful: CountingSite, kind: str) -> Iterator[Callable[[], int]]:
    """While the hostile source runs; answers with how often its host has been asked since."""
    path = "robots.txt" if kind == "robots" else kind
    before = harmful.counts()[path]
    [harm] = rig.enqueue("hostile")
    until(lambda: harmful.counts()[path] > before + 2, "the hostile one is at work")
    yield lambda: harmful.counts()[path] - before
    assert not rig.run(harm).is_ended, "and it was until now"
    rig.store.runs.cancel(harm, "test", "enough")
    until(lambda: rig.run(harm).is_ended, "it is at rest")


def pace_of(rig: Rig) -> float:
    [run_id] = rig.enqueue("healthy")
    until(lambda: rig.run(run_id).is_ended, "the healthy one has ended")
    run = rig.run(run_id)
    assert run.state == "completed"
    assert run.pages_done == PAGES
    return round(run.pages / ((run.finished_at or 0.0) - (run.started_at or 0.0)), 1)
