"""A project with something of everything that the dashboard shows, made by real runs, and its server."""

from __future__ import annotations

import html
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

from penstock import Project
from penstock.jobs.canary.guardrails import Limits, PageSample, judge
from penstock.jobs.run import RunKind
from penstock.store.canaries import CanarySource
from tests.browser.hostile_strings import STRINGS
from tests.journeys.rig import ENVIRONMENT, PENSTOCK

FIRST_DAY, LAST_DAY = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 12, tzinfo=UTC)
HOSTILE_SOURCE = "<img/src=x/onerror=window.pwned=1>"
FILE = """\
project: shop-watch
store: sqlite:penstock.db
hooks:
  - {{url: "{site}/hook", on: [completed, partial], allow_private: true}}
alert_rules: {{failures-in-an-hour: {{failures: 5}}}}
sources:
  shop:
    pipeline: shop:shop
    params: {{site: "{site}"}}
    schedule: {{every: 6h}}
    budget: {{requests: 5000/d}}
    fetch: {{allow_private: true}}
  broken:
    pipeline: shop:broken
    schedule: {{every: 1d}}
  prices:
    pipeline: shop:prices
    schedule: {{cron: "0 7 * * 1-5"}}
    backfill: {{window: 1d, partitions: [EUR, GBP]}}
  learner:
    pipeline: shop:learner
    schedule: manual
  "{hostile}":
    pipeline: shop:shop
    params: {{site: "{site}"}}
    schedule: manual
    fetch: {{allow_private: true}}
"""
PIPELINES = """\
import json
from pathlib import Path

from penstock import Pipeline

STRINGS = json.loads((Path(__file__).parent / "strings.json").read_text())
shop, broken, prices = Pipeline("shop"), Pipeline("broken"), Pipeline("prices")
learner = Pipeline("learner")


@shop.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params.get("pages", 3)):
        yield {"url": ctx.params["site"] + f"/page?n={number}&t=" + STRINGS[number * 7].replace(" ", "+")}


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    print("fetched", STRINGS[0])
    for number, text in enumerate(STRINGS):
        if number % 3 == int(page["url"].partition("n=")[2][0]):
            found = {"title": text, "price": number, "round": ctx.params.get("round", 1)}
            yield {"key": f"{number:03d} {text}", **found}


@shop.step(after="extract", unit="candidate")
def persist(item, ctx):
    ctx.save("product", key=item["key"], data=item, score=0.5)


@prices.step(unit="run")
async def windows(ctx):
    yield {"partition": "EUR", "from": "2026-01-05", "to": "2026-01-06"}
    ctx.checkpoint("2026-01-06", partition="EUR")


@prices.step(after="windows", unit="page", windows=True)
async def fetch(ctx):
    window = ctx.window
    ctx.save("price", key=f"{window.partition} {window.start:%Y-%m-%d}", data={"price": 1.5}, score=0.9)


@learner.step(unit="run")
async def learn(ctx):
    item = {"url_pattern": "/offers/[^/?]+", "fields": {}}
    proposals = [
        {"id": "redesign", "kind": "redesign", "name": STRINGS[9], "description": STRINGS[10],
         "proposed_at": "2026-01-05T06:00:00Z", "justification": {"objections": STRINGS[:20]},
         "change": {"site_name": STRINGS[11]}},
        {"id": "older", "kind": "model", "name": STRINGS[12], "description": STRINGS[13],
         "proposed_at": "2026-01-05T06:00:00Z", "version": 1, "contents": "of another schema"},
    ]
    ctx.save("site_schemas", key="acme.example", data={
        "domain": "acme.example", "version": 2, "cataloged_at": "2026-01-05T05:00:00Z",
        "schema_data": {"page_types": {"item": item}}, "schema_proposals": proposals,
        "pollution_notes": STRINGS[:3],
    })


@broken.step(unit="run")
async def list_all(ctx):
    for number, text in enumerate(STRINGS):
        yield {"number": number, "text": text}


@broken.step(after="list_all", unit="page", key="number")
def fail(item):
    if item["number"] % 10 == 0:
        raise ValueError(item["text"])
    return None
"""


class _Page(BaseHTTPRequestHandler):
    """A page whose title is what its address says, as text and as markup."""

    def do_GET(self) -> None:
        text = parse_qs(urlsplit(self.path).query).get("t", [""])[0]
        body = f"<!doctype html><title>{html.escape(text)}</title><h1>Offer</h1>{text}".encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """A hook: everything is accepted."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing: the test's own output is enough."""


@contextmanager
def _site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def lay_out(folder: Path, site: str) -> None:
    (folder / "penstock.yaml").write_text(FILE.format(site=site, hostile=HOSTILE_SOURCE))
    (folder / "shop.py").write_text(PIPELINES)
    (folder / "strings.json").write_text(json.dumps(STRINGS))


def fill(folder: Path) -> None:
    """Two runs of one source with different data and a replay, a backfill, and a run that fails in part.

    The failures raise an alert, whose runbook somebody begins to follow, and a hook is called. Two releases
    came here, and two were tried as canaries.
    """
    with _site() as site:
        lay_out(folder, site)
        with Project.load(folder) as project:
            begun = [
                project.runs.start("shop", reason=STRINGS[0]),
                project.runs.start("shop", new=True, params={"round": 2}),
                project.runs.start("broken"),
                project.runs.start("prices"),
                project.runs.start("learner"),
                project.backfills.start("prices", FIRST_DAY, LAST_DAY),
            ]
            project.runs.finish([each.run.id for each in begun if each.run is not None])
            replay = project.replays.start(1)
            project.runs.finish([replay.run.id])
            _propose(project, site)
            project.quarantine.note(_failed_job(project), STRINGS[1])
            project.runbooks.skip("source-broke", "compare", source="broken", reason=STRINGS[2])
            _release(project, folder)
            _try(project, "prices", is_worse=False)
            _try(project, "shop", is_worse=True)
        # Whoever leads judges what happened, and delivers.
        command = [*PENSTOCK, "up", "--until-idle", "--project", str(folder)]
        subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True)


def _release(project: Project, folder: Path) -> None:
    """Two releases that came here, of which the first one runs again, and one that somebody approves."""
    releases = project.releases
    first = releases.create(reason=STRINGS[3]).release
    (folder / "penstock.staging.yaml").write_text(f"worker: {{slots: 3}} # {STRINGS[4]!r}\n")
    second = releases.create(reason=STRINGS[5]).release
    releases.rollback(first, reason=STRINGS[6])
    releases.approve(second, actor=STRINGS[8], reason=STRINGS[9])


def _try(project: Project, source: str, *, is_worse: bool) -> None:
    """A canary that was looked at: it has passed, or was stopped and is rolled back."""
    canaries, limits = project.connection.canaries, Limits()
    found = project.source(source)
    graph = project.graph(found)
    plans = {kind: graph.plan(found.priority, RunKind(kind)) for kind in ("full", "incremental")}
    text = msgspec.json.encode(plans).decode()
    part = CanarySource(project.source_ids[source], True, "v", text)
    about = (10.0, "salt", limits, [part], STRINGS[10], STRINGS[11])
    canary = canaries.begin("f" * 64, "pages", *about)
    pages = [
        PageSample(part.source_id, each % 2 == 0, is_worse and each % 2 == 0, keys={str(each)})
        for each in range(1000)
    ]
    look = judge(pages, limits, 1)
    canaries.note_look(canary, look)
    if is_worse:
        canaries.stop(canary, "active", "penstock", look.words(limits))
        canaries.rolled_back(canary, 1, 1)
    else:
        canaries.has_passed(canary, STRINGS[12])


def _propose(project: Project, site: str) -> None:
    """A source that was proposed and checked, and is on legal hold."""
    keys = {"pipeline": "shop:shop", "params": {"site": site}, "fetch": {"allow_private": True}}
    sources = project.sources
    sources.propose("newcomer", keys=keys, owner=STRINGS[3], actor="ann", reason=STRINGS[4])
    sources.check("newcomer", terms=f"{site}/terms?t=be+nice", reason=STRINGS[5])
    sources.legal_hold("newcomer", actor="ann", reason=STRINGS[6])


def fill_a_little(folder: Path) -> None:
    """One run that has saved records, and one that has failed in part."""
    with _site() as site:
        lay_out(folder, site)
        with Project.load(folder) as project:
            begun = [project.runs.start("shop"), project.runs.start("broken")]
            project.runs.finish([each.run.id for each in begun if each.run is not None])


def _failed_job(project: Project) -> int:
    return project.jobs.list(source="broken", states=["quarantined"], limit=1).items[0].id


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """The address of `penstock web` on this project, and the link that logs in."""
    command = [*PENSTOCK, "web", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            link = ""
            while not link:
                line = server.stdout.readline()
                assert line, "penstock web ended before it was listening"
                link = next(iter(re.findall(r"http://\S+/login\S*", line)), "")
            yield link.partition("/login")[0], link
        finally:
            server.terminate()
            server.stdout.read()
            server.wait()
