"""Judging on virtual time: thresholds, rejections, what is not allowed, and what is judged again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import Pipeline, Project
from penstock.engine.worker.redaction import redact_notes
from penstock.errors import Refused
from penstock.http.network import RawResponse, Request
from penstock.jobs.effects import Effects, Rejection
from penstock.jobs.emptiness import AS_EXPECTED, NOT_ALLOWED, UNEXPECTED
from penstock.jobs.outcome import Failed, Reject
from penstock.jobs.run import RunKind
from penstock.pipeline.context import Context
from penstock.pipeline.rejection import rejection_of
from penstock.store.reject_rows import RejectFilter
from penstock.store.rows import RunRow
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock
from tests.unit.performing import attempt

pytestmark = pytest.mark.usefixtures("pipelines")

MODULE = "judged_pipelines"
PIPELINES = """
from penstock import Pipeline, Reject

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap("https://shop.example/sitemap.xml"):
        yield {"url": url}


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    if ctx.params.get("strict"):
        raise Reject("not a page of ours", code="foreign")
    for product in response.json():
        yield product


@shop.step(after="extract", unit="candidate", key="sku")
def judge(product, ctx):
    if product["price"] is None:
        raise Reject("no price", code="no_price", score=0.0)
    if product["price"] < 0:
        ctx.reject("a refund", code="refund")
        return None
    if product["price"] == 0:
        return None
    return product


@shop.step(after="judge", unit="candidate")
def persist(product, ctx):
    ctx.save("product", key=product["sku"], data=product, score=product["score"])


@shop.step(after="persist", unit="run", gather=True)
def report(ctx):
    ctx.note("gathered")
"""
PRODUCTS = [
    {"sku": "good", "price": 5, "score": 0.9},
    {"sku": "poor", "price": 5, "score": 0.2},
    {"sku": "edge", "price": 5, "score": 0.5},
    {"sku": "unpriced", "price": None, "score": 0.9},
    {"sku": "refund", "price": -1, "score": 0.9},
    {"sku": "free", "price": 0, "score": 0.9},
]


class Shop:
    """A project with one source, and the site that it reads."""

    def __init__(self, folder: Path, **source: object) -> None:
        self.folder = folder
        folder.mkdir()
        self.pages = {"/p/1": PRODUCTS}
        self.robots = ""
        self.status = 200
        self.requests: list[str] = []
        self.clock = VirtualClock()
        self.configure(**source)

    def configure(self, **source: object) -> None:
        sources = {"shop.example": {"pipeline": f"{MODULE}:shop", **source}}
        config = {"project": "judged", "sources": sources}
        (self.folder / "penstock.yaml").write_text(json.dumps(config))
        self.project = Project.load(self.folder)

    async def answer(self, request: Request) -> RawResponse:
        path = request.url.removeprefix("https://shop.example")
        self.requests.append(path)
        if path == "/robots.txt":
            return RawResponse(200, {"content-type": "text/plain"}, self.robots.encode())
        if path == "/sitemap.xml":
            found = "".join(f"<url><loc>https://shop.example{p}</loc></url>" for p in self.pages)
            return RawResponse(
                200, {"content-type": "application/xml"}, f"<urlset>{found}</urlset>".encode()
            )
        body = json.dumps(self.pages.get(path, [])).encode()
        return RawResponse(self.status, {"content-type": "application/json"}, body)

    def work(self) -> None:
        network = ScriptedNetwork(self.answer)
        with Simulation(self.project, network, seed=1, clock=self.clock) as simulation:
            simulation.run()

    def run(self) -> RunRow:
        run_id = self.project.run("shop.example")
        self.work()
        return self.project.require_run(run_id)

    def redrive(self, **wanted: Any) -> RunRow:
        redriven = self.project.redrive("shop.example", RejectFilter(**wanted))
        self.work()
        return self.project.require_run(redriven.run_id)

    @property
    def keys(self) -> set[str]:
        return {row.key for row in self.project.connection.records.of("product")}


def test_threshold_decides_what_is_saved_and_what_is_rejected(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop", threshold=0.5)

    run = shop.run()

    assert shop.keys == {"good", "edge"}
    rejects = {row.key: row for row in shop.project.connection.rejects.newest(RejectFilter())}
    assert {key: (row.code, row.score) for key, row in rejects.items()} == {
        "poor": ("below_threshold", 0.2),
        "unpriced": ("no_price", 0.0),
        "refund": ("refund", None),
    }
    assert "0.2 is below the threshold 0.5" in rejects["poor"].reason
    account = shop.project.connection.runs.account(run)
    assert (account.candidates.accepted, account.candidates.rejected) == (2, 3)
    assert (account.candidates.dropped, account.unaccounted) == (1, 0)
    assert run.end_reason == ""


def test_without_a_threshold_every_score_is_good_enough(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")

    shop.run()

    assert shop.keys == {"good", "poor", "edge"}


def test_reject_remembers_the_page_that_it_came_from(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop", threshold=0.5)
    shop.run()
    store = shop.project.connection
    page = store.snapshots.last("https://shop.example/p/1")

    assert page is not None
    assert {row.snapshot_id for row in store.rejects.newest(RejectFilter())} == {page.id}


def test_redrive_judges_by_todays_threshold_without_the_network(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop", threshold=0.5)
    shop.run()
    asked = len(shop.requests)
    shop.configure(threshold=0.1)

    run = shop.redrive(code="below_threshold")

    assert len(shop.requests) == asked
    assert shop.keys == {"good", "edge", "poor"}
    assert (run.kind, run.state, run.of_run_id) == (RunKind.REPLAY, "completed", 1)
    assert run.inserted == 1
    left = shop.project.connection.rejects.newest(RejectFilter(open_only=True))
    assert {row.code for row in left} == {"no_price", "refund"}


def test_page_that_was_rejected_is_judged_again_from_its_snapshot(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop", params={"strict": True})
    shop.run()
    assert shop.keys == set()
    asked = len(shop.requests)
    shop.configure()

    run = shop.redrive(code="foreign")

    assert len(shop.requests) == asked
    assert shop.keys == {"good", "poor", "edge"}
    account = shop.project.connection.runs.account(run)
    assert (account.pages.discovered, account.pages.extracted, account.unaccounted) == (1, 1, 0)


def test_redrive_rejects_again_what_is_still_not_wanted(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop", threshold=0.5)
    shop.run()

    run = shop.redrive()

    assert shop.keys == {"good", "edge"}
    assert run.state == "completed"
    found = shop.project.connection.rejects.newest(RejectFilter(open_only=True))
    assert {(row.key, row.run_id) for row in found} == {
        ("poor", run.id), ("unpriced", run.id), ("refund", run.id),
    }  # fmt: skip
    assert shop.project.connection.runs.account(run).unaccounted == 0


def test_redrive_gathers_nothing_and_moves_no_checkpoint(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop", threshold=0.5)
    shop.run()

    run = shop.redrive()

    events = shop.project.connection.journal.events(run_id=run.id, limit=500)
    assert "gathered" not in [event.detail for event in events]


def test_redrive_of_nothing_is_refused(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")

    with pytest.raises(Refused, match="nothing to redrive"):
        shop.redrive(code="no_price")


def test_site_that_becomes_empty_is_told_from_one_that_always_was(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    full, shop.pages = shop.pages, {}
    assert (shop.run().state, shop.run().end_reason) == ("completed", AS_EXPECTED)

    shop.pages = full
    assert [shop.run().end_reason for _ in range(3)] == ["", "", ""]
    shop.pages = {}
    run = shop.run()

    assert (run.state, run.end_reason) == ("partial", UNEXPECTED)


def test_pages_that_suddenly_yield_nothing_are_noticed(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    for _ in range(3):
        shop.run()
    shop.pages = {"/p/1": []}

    run = shop.run()

    assert (run.state, run.end_reason) == ("partial", UNEXPECTED)


@pytest.mark.parametrize("what", ["/p/", "/"])
def test_site_whose_robots_forbid_everything_fails_the_run(tmp_path: Path, what: str) -> None:
    shop = Shop(tmp_path / "shop")
    shop.robots = f"User-agent: *\nDisallow: {what}\n"

    run = shop.run()

    assert (run.state, run.end_reason) == ("failed", NOT_ALLOWED)


def test_site_that_does_not_let_us_in_fails_the_run(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    shop.status = 401

    run = shop.run()

    assert (run.state, run.end_reason) == ("failed", NOT_ALLOWED)


@pytest.mark.parametrize(
    ("raised", "kept"),
    [
        (Reject("no price"), Rejection("rejected", "no price")),
        (Reject("no price", code="no_price", score=1), Rejection("no_price", "no price", 1.0)),
        (Reject("x", code="two words"), Rejection("rejected", "x")),
        (Reject("x", code="c" * 65), Rejection("rejected", "x")),
        (Reject("x", code=None), Rejection("rejected", "x")),  # type: ignore[arg-type]
        (Reject("x", score=float("nan")), Rejection("rejected", "x")),
        (Reject("x", score="high"), Rejection("rejected", "x")),  # type: ignore[arg-type]
        (Reject("\ud800"), Rejection("rejected", "\\ud800")),
    ],
)
def test_whatever_is_raised_is_kept_as_a_rejection(raised: Reject, kept: Rejection) -> None:
    assert rejection_of(raised) == kept


@pytest.mark.parametrize("code", ["", "two words", "c" * 65, None, 7, "no\nprice"])
def test_code_that_nobody_could_ask_for_is_refused(code: object) -> None:
    pipeline = Pipeline("p")

    @pipeline.step(unit="run")
    def begin() -> object:
        return {}

    @pipeline.step(after="begin", unit="candidate")
    def act(item: object, ctx: Context) -> None:
        ctx.reject("why", code=code)  # type: ignore[arg-type]

    outcome = attempt(pipeline, "act", {})

    assert isinstance(outcome, Failed)
    assert "ctx.reject needs a code" in outcome.error
    assert outcome.is_permanent


def test_secret_in_a_reason_is_masked() -> None:
    effects = Effects(rejections=[Rejection("c", "the key hunter2 is too old", 0.5)])

    redact_notes(effects, frozenset({"hunter2"}))

    assert effects.rejections == [Rejection("c", "the key *** is too old", 0.5)]
