"""Two Penstocks on one database, as on two hosts: a site sees no more of both than it would of one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from penstock.jobs.job import JobState
from tests.journeys.rig import Rig, until
from tests.journeys.test_many_hosts import pids_by_host, stop

PIPELINE = """
import os

from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"url": f"{ctx.params['site']}/{ctx.source.key}/{number}"}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    await ctx.fetch(page["url"], headers={"X-Worker": str(os.getpid())})


crawl = Pipeline("crawl")


@crawl.step(unit="run")
async def walk(ctx):
    while True:
        await ctx.fetch(ctx.params["site"], headers={"X-Worker": str(os.getpid())})
"""
CLOSED_S = 600


class Site(ThreadingHTTPServer):
    """Says hello to everybody, and to one request that it is too much; knows who came when.

    It takes its time, and knows how many were there at once.
    """

    daemon_threads = True

    def __init__(self, closes_at: int | None = None, takes_s: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), Visit)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.closes_at = closes_at
        self.takes_s = takes_s
        self.lock = Lock()
        self.busy = 0
        self.most = 0
        self.seen: list[tuple[float, int]] = []

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def spend_time(self) -> None:
        with self.lock:
            self.busy += 1
            self.most = max(self.most, self.busy)
        Event().wait(self.takes_s)
        # Before it answers: whoever was answered may have sent another by then.
        with self.lock:
            self.busy -= 1

    @property
    def workers(self) -> set[int]:
        return {worker for _, worker in self.seen}


class Visit(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        seen = self.server.seen
        seen.append((time.time(), int(self.headers["X-Worker"])))
        self.server.spend_time()
        is_too_much = len(seen) == self.server.closes_at
        self.send_response(429 if is_too_much else 200)
        if is_too_much:
            self.send_header("Retry-After", str(CLOSED_S))
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: Any) -> None:
        return None


@contextmanager
def a_site(closes_at: int | None = None, takes_s: float = 0.0) -> Iterator[Site]:
    with Site(closes_at, takes_s) as site:
        thread = Thread(target=site.serve_forever, args=(0.05,))
        thread.start()
        yield site
        site.shutdown()
        thread.join()


def source(site: Site, pipeline: str, pages: int = 0, **limits: Any) -> dict[str, Any]:
    return {
        "pipeline": f"steps:{pipeline}",
        "params": {"site": site.url, "pages": pages},
        "limits": limits,
        "fetch": {"allow_private": True, "robots": False},
    }


def limit(rig: Rig, site: Site, **limits: Any) -> None:
    """Bound what all sources together do to the site; with nothing, don't."""
    file = rig.folder / "penstock.yaml"
    config = json.loads(file.read_text())
    config["hosts"] = {site.host: limits} if limits else {}
    file.write_text(json.dumps(config))


def test_rate_holds_over_two_hosts(tmp_path: Path, database: str) -> None:
    """Counted from when the run was made, so that nobody's delay can look like haste."""
    with a_site() as site:
        shop = source(site, "pages", 60, rate="20/s", concurrency=8)
        with Rig(tmp_path, {"shop": shop}, PIPELINE, {"slots": 4}, store=database) as rig:
            one, two = rig.start("up"), rig.start("up")
            pids = pids_by_host(rig, one, two)
            [run_id] = rig.enqueue("shop")
            until(lambda: rig.run(run_id).is_ended, "the run has ended", within_s=60)
            stop(one, two)
            run = rig.run(run_id)

            assert (run.state, run.retried, run.throttled) == ("completed", 0, 0)
            assert site.workers == set(pids)
            times = sorted(at for at, _ in site.seen)
            assert len(times) == 60
            for count, at in enumerate(times):
                assert at - run.created_at >= count / 20 - 0.001
            rig.assert_sound()


def test_host_that_closes_for_one_is_left_alone_by_the_other(tmp_path: Path, database: str) -> None:
    """It says so once, to one of them; the other is in the middle of an attempt, for another source."""
    with a_site(closes_at=80) as site:
        sources = {key: source(site, "crawl", rate="20/s") for key in ("one", "two")}
        with Rig(tmp_path, sources, PIPELINE, {"slots": 1}, store=database) as rig:
            one, two = rig.start("up"), rig.start("up")
            pids = pids_by_host(rig, one, two)
            rig.enqueue("one", "two")
            # One was answered so; the other was told before it asked, and that counts for nothing.
            heard = ("job.throttled", "job.snoozed")
            until(lambda: len(rig.events(*heard)) == 2, "both know")
            stop(one, two)

            assert site.workers == set(pids)
            assert len(rig.events("job.throttled")) == 1
            known_at = max(event.at for event in rig.events(*heard))
            assert max(at for at, _ in site.seen) < known_at
            assert {(job.state, job.tries) for job in rig.jobs()} == {(JobState.WAITING, 0)}


def test_limits_of_a_host_hold_for_all_sources_over_two_hosts(
    tmp_path: Path, database: str
) -> None:
    """Neither source has a limit that would matter; the site counts what both do together."""
    with a_site(takes_s=0.08) as site:
        shops = {key: source(site, "pages", 25, concurrency=8) for key in ("one", "two")}
        with Rig(tmp_path, shops, PIPELINE, {"slots": 8}, store=database) as rig:
            limit(rig, site, concurrency=2, rate="20/s")
            one, two = rig.start("up"), rig.start("up")
            pids = pids_by_host(rig, one, two)
            runs = [rig.run(run_id) for run_id in rig.enqueue("one", "two")]
            until(lambda: all(rig.run(run.id).is_ended for run in runs), "both ended", within_s=90)
            stop(one, two)

            assert {rig.run(run.id).state for run in runs} == {"completed"}
            assert site.workers == set(pids)
            assert site.most == 2
            times = sorted(at for at, _ in site.seen)
            assert len(times) == 50
            began = min(run.created_at for run in runs)
            for count, at in enumerate(times):
                assert at - began >= count / 20 - 0.001
            assert {job.tries for job in rig.jobs()} == {0}
            rig.assert_sound()


def test_host_outside_of_its_hours_is_not_asked_and_explain_says_when_it_will_be(
    tmp_path: Path,
) -> None:
    with a_site() as site, Rig(tmp_path, {"shop": source(site, "pages", 3)}, PIPELINE) as rig:
        hour = datetime.now(UTC).hour
        limit(rig, site, windows=f"{(hour + 2) % 24}:00-{(hour + 3) % 24}:00")
        [run_id] = rig.enqueue("shop")
        done = rig.penstock("up", "--until-idle")
        assert done.returncode == 0, done.stderr
        assert site.seen == []
        waiting = rig.jobs(JobState.WAITING)
        assert [(job.tries, job.attempt) for job in waiting] == [(0, 1)] * 3

        answer = json.loads(rig.penstock("explain", "shop", "--json").stdout)
        [host] = [gate for gate in answer["gates"] if gate["gate"] == "host"]
        setting = f"hosts.{site.host}.windows"
        assert host["by"] == f"{site.host} is outside of its hours ({setting})"
        assert host["command"] == setting
        opens_at = datetime.fromisoformat(host["opens_at"])
        assert (opens_at.hour, opens_at.minute) == ((hour + 2) % 24, 0)
        assert answer["at_the_request"] == [host]
        shown = rig.penstock("explain", "--job", str(waiting[0].id)).stdout
        assert f"waiting: {site.host} is outside of its hours ({setting})" in shown

        status = rig.penstock("status").stdout
        assert f"{site.host}  outside its hours; they start in " in status
        outside = json.loads(rig.penstock("status", "--json").stdout)["hosts_outside"]
        assert outside == {site.host: host["opens_at"]}

        limit(rig, site)
        for job in waiting:
            assert rig.penstock("retry", "--job", str(job.id)).returncode == 0
        assert rig.penstock("up", "--until-idle").returncode == 0
        assert rig.run(run_id).state == "completed"
        assert len(site.seen) == 3
