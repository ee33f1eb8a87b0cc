"""A site that breaks and comes back: it is left alone, over a restart too, and an operator can say when."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from penstock.jobs.job import JobState
from tests.journeys.rig import Rig, kill, until

PIPELINE = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"url": f"{ctx.params['site']}/{number}"}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    ctx.save("page", key=page["url"], data={"text": response.text})
"""


class Site(ThreadingHTTPServer):
    """Answers with hello, or with 500 while it is broken."""

    daemon_threads = True

    def __init__(self, breaks_after: int) -> None:
        super().__init__(("127.0.0.1", 0), Visit)
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.breaks_after = breaks_after
        self.is_mended = False
        self.asked = 0
        self.failed = 0
        self.lock = Lock()

    def is_broken(self) -> bool:
        with self.lock:
            self.asked += 1
            is_broken = self.asked > self.breaks_after and not self.is_mended
            self.failed += is_broken
            return is_broken


class Visit(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        self.send_response(500 if self.server.is_broken() else 200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: Any) -> None:
        return None


@contextmanager
def a_site(breaks_after: int) -> Iterator[Site]:
    with Site(breaks_after) as site:
        thread = Thread(target=site.serve_forever, args=(0.05,))
        thread.start()
        yield site
        site.shutdown()
        thread.join()


def breakers(rig: Rig) -> dict[str, dict[str, Any]]:
    told = rig.penstock("breakers", "--json")
    assert told.returncode == 0, told.stderr
    return {each["breaker"]: each for each in json.loads(told.stdout)}


def a_source(site: Site, pages: int, **more: Any) -> dict[str, Any]:
    return {
        "pipeline": "steps:pages",
        "params": {"site": f"http://{site.host}", "pages": pages},
        "fetch": {"allow_private": True, "robots": False},
        **more,
    }


def test_broken_site_is_left_alone_until_it_is_said_to_be_back(tmp_path: Path) -> None:
    pages = 200
    with (
        a_site(breaks_after=20) as site,
        Rig(tmp_path, {"acme.com": a_source(site, pages)}, PIPELINE) as rig,
    ):
        [run_id] = rig.enqueue("acme.com")
        working = rig.start("up")
        host = f"host:{site.host}"

        def is_shut() -> bool:
            shut = {row.key for row in rig.store.breakers.all() if row.state == "open"}
            return shut == {host, "source:acme.com"}

        until(is_shut, "both breakers are open", process=working)
        asked_in_vain = site.failed
        assert asked_in_vain < 40, "it was not asked for each of two hundred pages"

        # What an operator sees.
        told = breakers(rig)
        assert {each["state"] for each in told.values()} == {"open"}
        assert "500" in told[host]["reason"]
        assert "breaker open" in rig.penstock("status").stdout
        assert "breaker open" in rig.penstock("sources").stdout
        assert rig.run(run_id).quarantined == 0

        # It holds over a crash.
        pid = rig.worker_pid(working)
        kill(working.pid)
        working.wait()
        if pid is not None:
            kill(pid)
        again = rig.start("up")
        until(lambda: rig.worker_pid(again), "a worker is there again", process=again)
        assert site.failed <= asked_in_vain + 2

        # They are back, says somebody; all of it is done, and nothing was lost.
        site.is_mended = True
        for name in (site.host, "acme.com"):
            closed = rig.penstock("breaker", "close", name, "--reason", "they are back")
            assert closed.returncode == 0, closed.stderr
        until(lambda: rig.run(run_id).is_ended, "the run has ended", process=again)
        run = rig.run(run_id)
        assert (run.state, run.pages_done, run.quarantined) == ("completed", pages, 0)
        assert {job.state for job in rig.jobs(stage="extract")} == {JobState.SUCCEEDED}
        assert max(job.tries for job in rig.jobs()) <= 2
        kinds = [event.kind for event in rig.events("breaker.opened", "breaker.closed")]
        assert "breaker.opened" in kinds
        by_hand = [e for e in rig.events("breaker.closed") if "they are back" in e.detail]
        assert len(by_hand) == 2
        assert all(event.actor for event in by_hand)


def test_source_comes_back_by_itself(tmp_path: Path) -> None:
    """Its own breaker and no host's: the step has a client of its own."""
    steps = """
import pathlib

from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
def discover(ctx):
    for number in range(40):
        yield {"n": number}


@pages.step(after="discover", unit="page", key="n")
def extract(page, ctx):
    if not pathlib.Path(ctx.params["there"]).exists():
        raise ConnectionError("nobody is there")
    ctx.save("page", key=str(page["n"]), data=page)
"""
    there = tmp_path / "there"
    source = {
        "pipeline": "steps:pages",
        "params": {"there": str(there)},
        "breaker": {"open_for": "1s", "longest": "2s", "at_least": 4},
    }
    with Rig(tmp_path, {"acme.com": source}, steps) as rig:
        [run_id] = rig.enqueue("acme.com")
        working = rig.start("up")
        until(
            lambda: len(rig.events("breaker.opened")) >= 3,
            "it was tried again, twice",
            process=working,
        )
        assert rig.run(run_id).quarantined == 0
        there.touch()
        until(lambda: rig.run(run_id).is_ended, "the run has ended", process=working)
        assert rig.run(run_id).state == "completed"
        assert [event.source for event in rig.events("breaker.closed")] == ["acme.com"]
        assert len(rig.store.records.of("page", limit=100)) == 40


def test_wrong_words_are_answered_in_one_line(tmp_path: Path) -> None:
    with Rig(tmp_path, {"acme.com": {"pipeline": "steps:pages"}}) as rig:
        assert "no breakers" in rig.penstock("breakers").stdout
        for words, says in (
            (("close", "acme.con"), "did you mean 'acme.com'"),
            (("open", "acme.com"), "--yes"),
            (("open", "acme.com", "--for", "long", "--yes"), "is not a duration"),
        ):
            done = rig.penstock("breaker", *words)
            assert done.returncode in (2, 7)
            assert says in done.stderr
            assert "Traceback" not in done.stderr
