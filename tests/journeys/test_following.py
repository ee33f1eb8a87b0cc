"""A step that follows the links it finds: durable, each page once, and bounded."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from penstock.jobs.job import JobState
from penstock.jobs.run import RunState
from tests.journeys.rig import Rig, kill, until

PAGES = 60
STEPS = """
import re

from penstock import Pipeline

site = Pipeline("site")


@site.step(unit="run")
def discover(ctx):
    yield {"url": ctx.params["start"]}


@site.step(after="discover", unit="page", key="url", follow=FOLLOW)
async def crawl(page, ctx):
    response = await ctx.fetch(page["url"])
    for link in re.findall(r'href="([^"]+)"', response.text):
        ctx.follow({"url": ctx.params["site"] + link})
    yield {"path": page["url"].removeprefix(ctx.params["site"])}


@site.step(after="crawl", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=page["path"], data=page)


@site.step(after=["crawl", "persist"], gather=True)
async def count(ctx):
    found = [row["key"] async for row in ctx.records("page")]
    ctx.note(f"gathered {len(found)}")
"""


class Cyclic(BaseHTTPRequestHandler):
    """Page n links to n + 1, n + 2 and back to the first: 60 pages, full of cycles."""

    seen: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        if self.path == "/robots.txt":
            self.send_error(404)
            return
        Cyclic.seen[self.path] += 1
        number = int(self.path.removeprefix("/"))
        links = [0, (number + 1) % PAGES, (number + 2) % PAGES]
        body = "".join(f'<a href="/{link}">x</a>' for link in links).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def cyclic_site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Cyclic)
    Cyclic.seen = Counter()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def crawling(folder: Path, follow: str) -> Iterator[Rig]:
    with cyclic_site() as site:
        source = {
            "pipeline": "steps:site",
            "params": {"start": f"{site}/0", "site": site},
            "fetch": {"allow_private": True},
            "limits": {"concurrency": 2},
        }
        with Rig(folder, {"loop.org": source}, STEPS.replace("FOLLOW", follow)) as rig:
            yield rig


def test_a_cyclic_site_is_crawled_once_although_it_is_killed_in_the_middle(tmp_path: Path) -> None:
    with crawling(tmp_path, "{'depth': 100}") as rig:
        rig.enqueue("loop.org")
        up = rig.start("up")

        def has_come_to(goal: int) -> bool:
            return rig.run(1).inserted >= goal

        for goal in (10, 30):
            until(partial(has_come_to, goal), f"{goal} pages are in", process=up)
            worker = rig.worker_pid(up)
            assert worker is not None
            kill(worker)
        until(lambda: rig.run(1).is_ended, "the run has ended", process=up)
        up.terminate()
        assert up.wait(timeout=120) == 0, rig.output(up)

        assert rig.run(1).state is RunState.COMPLETED
        rig.assert_records({f"/{number}" for number in range(PAGES)})
        assert len(rig.jobs(JobState.SUCCEEDED, stage="crawl")) == PAGES
        assert [each.detail for each in rig.events("job.noted")] == [f"gathered {PAGES}"]
        rig.assert_sound()


@pytest.mark.parametrize(
    ("follow", "pages", "reason"),
    [
        ("{'depth': 3}", 7, ""),
        ("{'pages': 20, 'depth': 100}", 20, "cut: crawl reached its limit of 20 jobs"),
    ],
)
def test_following_ends_at_its_bounds(tmp_path: Path, follow: str, pages: int, reason: str) -> None:
    with crawling(tmp_path, follow) as rig:
        rig.enqueue("loop.org")
        assert rig.penstock("up", "--until-idle").returncode == 0

        assert rig.run(1).state is RunState.COMPLETED
        assert len(rig.jobs(JobState.SUCCEEDED, stage="crawl")) == pages
        assert rig.run(1).end_reason == reason
        assert [each.detail for each in rig.events("job.noted")] == [f"gathered {pages}"]


def test_a_run_with_params_and_few_pages_says_that_it_was_cut(tmp_path: Path) -> None:
    steps = """
from penstock import Pipeline

site = Pipeline("site")


@site.step(unit="run")
def discover(ctx):
    for number in range(10**9):
        yield {"n": number % ctx.params["of"]}


@site.step(after="discover", unit="page", key="n")
def extract(page, ctx):
    ctx.save("page", key=page["n"], data={"of": ctx.params["of"], "day": ctx.params["day"]})
"""
    source = {"pipeline": "steps:site", "params": {"of": 3, "day": "2020-01-01"}}
    with Rig(tmp_path, {"acme.com": source}, steps) as rig:
        words = ("--pages", "5", "--param", "of=1000", "--param", "day=2026-11-16")
        done = rig.penstock("run", "acme.com", *words)
        assert done.returncode == 0, done.stderr
        assert "cut: extract reached its limit of 5 jobs" in done.stdout

        rows = rig.store.records.of("page")
        assert [row.data for row in rows] == [{"of": 1000, "day": "2026-11-16"}] * 5
        assert {row.pipeline_version for row in rows} == {rig.run(1).pipeline_version}
        assert rig.run(1).options.params == {"of": 1000, "day": "2026-11-16"}
        assert rig.events("run.version_changed") == []
        refused = rig.penstock("run", "acme.com", "--param", "of")
        assert refused.returncode == 2
        assert "--param 'of' is not NAME=VALUE" in refused.stderr
