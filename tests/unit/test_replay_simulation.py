"""Replays on virtual time: no request, nothing but what changed, and nothing done before it is committed."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.diffs import Diff
from penstock.errors import Refused, UsageError
from penstock.http.network import RawResponse, Request
from penstock.jobs.diff import NOTHING, FieldChange
from penstock.jobs.job import JobState
from penstock.store.jobs import JobFilter
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal

MODULE = "replayed_pipelines"
SITE = "https://shop.example"
PIPELINE = """
from penstock import Pipeline, Reject, Skip

catalogue = Pipeline("catalogue")


@catalogue.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@catalogue.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    ctx.checkpoint({"url": page["url"]})
    ctx.signal("seen", url=page["url"])
    product = {**response.json(), "url": response.url}
    #EXTRACT
    yield product


@catalogue.step(after="extract", unit="candidate")
def persist(product, ctx):
    #PERSIST
    ctx.save("product", key=product["sku"], data=product, score=product["price"] / 10)


@catalogue.step(after="persist", unit="run", gather=True)
def export(ctx):
    ctx.note("exported")
"""


class Shop:
    """A project, its site, and its pipeline as it is today."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = VirtualClock()
        self.prices: dict[str, Any] = {f"p{n}": n for n in range(1, 6)}
        self.broken: set[str] = set()
        self.moved: dict[str, str] = {}
        self.network = ScriptedNetwork(self._answer)
        self.seed = 0
        self.write()
        config = {
            "project": "shop",
            "sources": {
                "shop.example": {
                    "pipeline": f"{MODULE}:catalogue",
                    "params": {"sitemap": f"{SITE}/sitemap.xml"},
                    "fetch": {"robots": False},
                    "retry": "fast",
                }
            },
        }
        (folder / "penstock.yaml").write_text(json.dumps(config))
        self.project = Project.load(folder)
        self.project.clock = self.clock

    def sql(self, text: str) -> list[Any]:
        """The rows of a statement that no verb of the store has."""
        store = self.project.connection
        assert isinstance(store, SqliteStore)
        return store._db.run_sql(text)

    def write(self, extract: str = "pass", persist: str = "pass") -> None:
        text = PIPELINE.replace("#EXTRACT", extract).replace("#PERSIST", persist)
        (self.folder / f"{MODULE}.py").write_text(text)

    def change(self, extract: str = "pass", persist: str = "pass") -> None:
        """Today's logic is another."""
        self.project.close()
        self.write(extract, persist)
        sys.modules.pop(MODULE, None)
        importlib.invalidate_caches()
        self.project = Project.load(self.folder)
        self.project.clock = self.clock

    async def _answer(self, request: Request) -> RawResponse:
        path = request.url.removeprefix(SITE + "/")
        if path == "sitemap.xml":
            urls = "".join(f"<url><loc>{SITE}/{sku}</loc></url>" for sku in self.prices)
            return RawResponse(
                200, {"content-type": "text/xml"}, f"<urlset>{urls}</urlset>".encode()
            )
        if path in self.broken:
            return RawResponse(404, {}, b"")
        if path in self.moved:
            return RawResponse(301, {"location": f"{SITE}/{self.moved[path]}"}, b"")
        sku = path.removeprefix("new-").removesuffix("/api")
        about = {"sku": sku, "price": self.prices[sku]}
        if request.body:
            about["body"] = request.body.decode()
        body = json.dumps(about).encode()
        return RawResponse(200, {"content-type": "application/json"}, body)

    def work(self) -> None:
        self.seed += 1
        with Simulation(self.project, self.network, seed=self.seed, clock=self.clock) as simulation:
            simulation.run()

    def run(self) -> int:
        self.clock.advance(3600)
        run_id = self.project.run("shop.example")
        self.work()
        return run_id

    def replay(self, *args: Any, **options: Any) -> int:
        self.clock.advance(60)
        run_id = self.project.replay(*args, **options)
        self.work()
        return run_id

    def records(self) -> dict[str, Any]:
        return {row.key: row.data for row in self.project.connection.records.of("product")}

    @contextmanager
    def without_requests(self) -> Iterator[None]:
        before = len(self.network.requests)
        yield
        assert self.network.requests[before:] == []


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    assert made.project.connection.upkeep.check() == []
    made.project.close()
    sys.modules.pop(MODULE, None)


def kinds(diff: Diff) -> dict[str, tuple[str, str]]:
    return {change.key: (change.kind, change.obstacle) for change in diff.first}


def test_unchanged_logic_gives_no_difference_and_no_request(shop: Shop) -> None:
    shop.moved["p3"] = "new-p3"
    run_id = shop.run()
    before = shop.project.connection.records.of("product")

    with shop.without_requests():
        replay = shop.replay(run_id)

    diff = shop.project.diff(replay)
    assert (diff.totals.differences, diff.totals.same, diff.first) == (0, 5, [])
    assert diff.run.state == "completed"
    assert (diff.run.of_run_id, diff.run.kind) == (run_id, "replay")
    done = shop.project.commit_replay(replay)
    assert (done.added, done.changed, done.removed) == (0, 0, 0)
    assert shop.project.connection.records.of("product") == before


def test_diff_tells_what_is_added_removed_and_changed_field_by_field(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(
        extract="if product['sku'] == 'p1': product['sku'] = 'p9'",
        persist="product = {**product, 'price': 20} if product['sku'] == 'p2' else product",
    )

    with shop.without_requests():
        replay = shop.replay(run_id)

    diff = shop.project.diff(replay)
    assert kinds(diff) == {"p1": ("removed", ""), "p2": ("changed", ""), "p9": ("added", "")}
    [changed] = [change for change in diff.first if change.kind == "changed"]
    assert changed.fields == [FieldChange(("price",), 2, 20)]
    assert (changed.score_before, changed.score_after) == (0.2, 2.0)
    [removed] = [change for change in diff.first if change.kind == "removed"]
    assert FieldChange(("price",), 1, NOTHING) in removed.fields
    totals = diff.totals
    assert (totals.scores_up, totals.scores_down, totals.fields) == (1, 0, {"price": 1})
    assert (totals.added, totals.removed, totals.changed, totals.same) == (1, 1, 1, 3)


def test_nothing_happens_to_records_before_the_commit_and_all_of_it_then(shop: Shop) -> None:
    run_id = shop.run()
    before = shop.project.connection.records.of("product")
    cursors = shop.project.connection.checkpoints.cursors(shop.project.source_ids["shop.example"])
    shop.change(extract="product = {**product, 'sku': product['sku'].upper()}")

    replay = shop.replay(run_id)

    store = shop.project.connection
    assert store.records.of("product") == before
    assert store.checkpoints.cursors(shop.project.source_ids["shop.example"]) == cursors
    assert not [event for event in journal(shop.project) if event.kind == "job.noted"][1:]
    done = shop.project.commit_replay(replay, actor="ops", reason="new keys")
    assert (done.added, done.changed, done.removed) == (5, 0, 5)
    assert set(shop.records()) == {"P1", "P2", "P3", "P4", "P5"}
    assert {row.run for row in store.records.of("product")} == {replay}
    told = [(e.kind, e.actor, e.detail) for e in journal(shop.project) if "commit" in e.kind]
    assert told == [
        ("run.commit_started", "ops", "new keys"),
        ("run.committed", "ops", "5 added, 0 changed, 5 removed: new keys"),
    ]
    assert [event.kind for event in journal(shop.project)].count("run.committed") == 1
    with pytest.raises(Refused, match="was committed already"):
        shop.project.diff(replay)


def test_signals_of_a_replay_are_not_raised(shop: Shop) -> None:
    run_id = shop.run()
    shop.replay(run_id)

    assert shop.sql("SELECT DISTINCT run_id FROM signal") == [(run_id,)]
    assert shop.sql("SELECT DISTINCT done_run_id FROM page") in ([], [(run_id,)])


def test_what_is_rejected_now_is_told_and_its_record_would_go(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(persist="if product['price'] < 3:\n        raise Reject('too cheap')")

    diff = shop.project.diff(shop.replay(run_id))

    assert (diff.rejected_now.count, diff.rejected_now.only, diff.rejected_before.count) == (
        2,
        2,
        0,
    )
    assert [each["reason"] for each in diff.rejected_now.first] == ["too cheap"] * 2
    assert diff.totals.removed == 2


def test_a_page_that_fails_now_takes_nothing_away(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(
        extract="if product['sku'] == 'p1':\n        raise ValueError('page')",
        persist="if product['sku'] == 'p2':\n        raise ValueError('candidate')",
    )

    diff = shop.project.diff(shop.replay(run_id))

    assert diff.run.state == "partial"
    assert (diff.totals.differences, diff.totals.same) == (0, 3)


def test_what_a_run_has_not_seen_is_refused_and_not_fetched(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(extract=f"await ctx.fetch('{SITE}/other')")

    with shop.without_requests():
        replay = shop.replay(run_id)

    jobs = shop.project.connection.jobs.find(
        JobFilter(run_id=replay, states=(JobState.QUARANTINED,))
    )
    assert len(jobs) == 5
    assert {(job.kind, job.attempt) for job in jobs} == {("data", 1)}
    assert f"not in the snapshots of run {run_id}" in (jobs[0].error or "")


@pytest.mark.parametrize(
    "what",
    [
        "ctx.fetch('https://shop.example/other', method='POST')",
        "anext(ctx.sitemap('https://shop.example/x.xml'))",
        "anext(ctx.feed('https://shop.example/feed'))",
        "ctx.fetch(page['url'] + '?again', conditional=True)",
    ],
)
def test_no_way_leads_to_the_network(shop: Shop, what: str) -> None:
    run_id = shop.run()
    shop.change(extract=f"await {what}")

    with shop.without_requests():
        replay = shop.replay(run_id)

    assert shop.project.require_run(replay).quarantined == 5


def test_what_was_posted_is_replayed_where_nothing_else_came_from_there(shop: Shop) -> None:
    """Snapshots don't keep what was sent: two answers from one address can't be told apart."""
    once = "product = (await ctx.fetch(page['url'] + '/api', method='POST', body=b'1')).json()"
    twice = f"{once}; await ctx.fetch(page['url'] + '/api', method='POST', body=b'2')"
    shop.change(extract=once)
    first = shop.run()
    with shop.without_requests():
        assert shop.project.diff(shop.replay(first)).totals.same == 5
    shop.change(extract=twice)
    second = shop.run()

    with shop.without_requests():
        assert shop.project.diff(shop.replay(second)).run.quarantined == 5


def test_replay_that_is_continued_is_replayed_as_a_whole(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(extract="raise ValueError('not yet')")
    replay = shop.replay(run_id)
    shop.change(persist="product['better'] = True")

    with shop.without_requests():
        again, _ = shop.project.continue_run(replay)
        shop.work()

    assert shop.project.diff(again.id).totals.changed == 5


def test_what_fails_in_a_replay_says_nothing_of_its_page(shop: Shop) -> None:
    run_id = shop.run()
    before = shop.sql("SELECT * FROM page ORDER BY url")
    assert before
    shop.change(extract="raise ValueError('not yet')")

    shop.replay(run_id)

    assert shop.sql("SELECT * FROM page ORDER BY url") == before


def test_incremental_run_is_replayed_with_the_pages_it_found_unchanged(shop: Shop) -> None:
    shop.run()
    shop.prices["p1"] = 100
    shop.clock.advance(3600)
    run_id = shop.project.run("shop.example", "incremental")
    shop.work()
    assert shop.project.require_run(run_id).skipped == 4

    with shop.without_requests():
        same = shop.replay(run_id)
        shop.change(persist="product['better'] = True")
        changed = shop.replay(run_id)

    assert (shop.project.diff(same).totals.same, shop.project.diff(same).totals.differences) == (
        5,
        0,
    )
    assert shop.project.diff(changed).totals.changed == 5


def unchanged(shop: Shop) -> tuple[int, int]:
    """What an incremental run does now: how many pages it leaves alone, and how many it extracts."""
    shop.clock.advance(3600)
    run_id = shop.project.run("shop.example", "incremental")
    shop.work()
    row = shop.project.require_run(run_id)
    return row.pages_unchanged, row.pages - row.pages_unchanged


def test_pages_of_a_committed_replay_are_done_with_its_version(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(persist="product['better'] = True")
    replay = shop.replay(run_id)
    shop.project.commit_replay(replay)

    assert unchanged(shop) == (5, 0)
    assert all(data["better"] for data in shop.records().values())


def test_pages_of_a_replay_that_found_nothing_to_change_are_done_with_its_version(
    shop: Shop,
) -> None:
    run_id = shop.run()
    shop.change(extract="0")
    shop.project.commit_replay(shop.replay(run_id))

    assert unchanged(shop) == (5, 0)


def test_pages_that_a_replay_s_step_skips_are_done_with_only_by_its_commit(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(extract="raise Skip('not today')")
    replay = shop.replay(run_id)
    versions = {row[0] for row in _pages(shop, "done_version")}
    assert versions == {shop.project.require_run(run_id).pipeline_version}

    shop.project.commit_replay(replay)

    assert unchanged(shop) == (5, 0)


def _pages(shop: Shop, columns: str) -> list[Any]:
    return shop.sql(f"SELECT {columns} FROM page WHERE done_hash IS NOT NULL")


def test_replay_that_is_not_committed_leaves_its_pages_to_be_extracted(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(persist="product['better'] = True")
    replay = shop.replay(run_id)
    shop.project.drop_replay(replay)

    assert unchanged(shop) == (0, 5)
    assert shop.sql("SELECT * FROM staged_page") == []


def test_page_of_which_something_failed_in_the_replay_is_not_done_with(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(persist="assert product['sku'] != 'p2', 'no'")
    shop.project.commit_replay(shop.replay(run_id))

    assert unchanged(shop) == (4, 1)


def test_page_that_failed_in_the_replay_is_not_done_with(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(extract="assert product['sku'] != 'p2', 'no'")
    shop.project.commit_replay(shop.replay(run_id))

    assert unchanged(shop) == (4, 1)


def test_page_that_has_changed_since_it_was_replayed_is_not_done_with(shop: Shop) -> None:
    first = shop.run()
    shop.prices["p1"] = 100
    shop.run()
    shop.change(persist="product['better'] = True")
    replay = shop.replay(first)
    shop.project.commit_replay(replay)

    assert unchanged(shop) == (4, 1)
    assert shop.records()["p1"] == {
        "sku": "p1", "price": 100, "url": f"{SITE}/p1", "better": True,
    }  # fmt: skip


def test_page_whose_record_the_commit_has_left_alone_is_done_with_when_it_is_forced(
    shop: Shop,
) -> None:
    run_id = shop.run()
    shop.change(persist="product['better'] = True")
    replay = shop.replay(run_id)
    other = shop.replay(run_id)
    shop.project.commit_replay(other)
    shop.project.undo(other)

    left = shop.project.commit_replay(replay)

    assert left.conflicts == 5
    versions = {row[0] for row in _pages(shop, "done_run_id")}
    assert versions == {other}
    shop.project.commit_replay(replay, force=True)
    assert {row[0] for row in _pages(shop, "done_run_id")} == {replay}
    assert unchanged(shop) == (5, 0)


def test_page_that_is_extracted_with_another_now_is_looked_at_together_with_it(
    shop: Shop,
) -> None:
    run_id = shop.run()
    shop.change(
        extract="if page['url'].endswith('p1'):\n"
        "        product['next'] = (await ctx.fetch(page['url'][:-1] + '2')).json()['price']"
    )
    shop.project.commit_replay(shop.replay(run_id))
    assert shop.records()["p1"]["next"] == 2

    shop.prices["p2"] = 20
    unchanged(shop)

    assert shop.records()["p1"]["next"] == 20


def test_quarantined_pages_can_be_replayed_alone(shop: Shop) -> None:
    shop.write()
    shop.change(extract="if product['price'] > 3:\n        raise ValueError('big')")
    run_id = shop.run()
    assert set(shop.records()) == {"p1", "p2", "p3"}
    shop.change()

    with shop.without_requests():
        replay = shop.replay(run_id, quarantined=True)

    assert kinds(shop.project.diff(replay)) == {"p4": ("added", ""), "p5": ("added", "")}
    assert shop.project.require_run(replay).pages == 2


def test_pages_that_were_never_fetched_stay_quarantined(shop: Shop) -> None:
    shop.broken.add("p1")
    run_id = shop.run()
    shop.broken.clear()

    with shop.without_requests():
        replay = shop.replay(run_id)

    assert shop.project.diff(replay).run.state == "partial"
    assert shop.project.diff(replay).totals.differences == 0


def test_all_that_a_source_has_fetched_since_then_is_replayed_as_it_was_last(shop: Shop) -> None:
    shop.run()
    since = shop.clock.now() + 1800
    shop.prices = {"p1": 11, "p2": 2}
    shop.run()
    shop.prices = {"p2": 22, "p3": 3}
    shop.run()
    shop.change(persist="product['seen'] = product['price']")

    with shop.without_requests():
        replay = shop.replay(source="shop.example", since=since)

    diff = shop.project.diff(replay)
    assert kinds(diff) == dict.fromkeys(("p1", "p2", "p3"), ("changed", ""))
    shop.project.commit_replay(replay)
    assert {key: data.get("seen") for key, data in shop.records().items()} == {
        "p1": 11, "p2": 22, "p3": 3, "p4": None, "p5": None,
    }  # fmt: skip


def test_what_a_later_run_knows_better_is_left_alone(shop: Shop) -> None:
    """The old page is not today's truth: what was seen since is not to be overwritten, nor removed."""
    first = shop.run()
    shop.prices = {"p1": 100, "p2": 2, "p3": 300}
    shop.run()
    shop.change(extract="if product['sku'] == 'p3': raise Skip('not this one')")

    replay = shop.replay(first)

    diff = shop.project.diff(replay)
    assert kinds(diff) == {"p1": ("changed", "newer")}
    done = shop.project.commit_replay(replay)
    assert (done.changed, done.removed, done.newer) == (0, 0, 1)
    assert shop.records()["p1"]["price"] == 100
    assert shop.project.commit_replay(replay, force=True).changed == 1
    assert shop.records()["p1"]["price"] == 1


def test_what_another_run_changed_since_the_replay_is_a_conflict(shop: Shop) -> None:
    run_id = shop.run()
    shop.change(persist="product['better'] = True")
    replay = shop.replay(run_id)
    shop.change()
    shop.prices["p1"] = 7
    shop.run()

    done = shop.project.commit_replay(replay)

    assert (done.changed, done.conflicts) == (4, 1)
    assert shop.records()["p1"] == {"sku": "p1", "price": 7, "url": f"{SITE}/p1"}
    assert kinds(shop.project.diff(replay)) == {"p1": ("changed", "conflict")}
    assert shop.project.drop_replay(replay) == 1


def test_dropped_replay_leaves_everything_as_it_was(shop: Shop) -> None:
    run_id = shop.run()
    before = shop.project.connection.records.of("product")
    shop.change(persist="product['better'] = True")
    replay = shop.replay(run_id)

    assert shop.project.drop_replay(replay, actor="ops", reason="worse") == 5

    assert shop.project.connection.records.of("product") == before
    assert [e.detail for e in journal(shop.project) if e.kind == "run.dropped"] == ["worse"]
    for act in (shop.project.diff, shop.project.commit_replay, shop.project.drop_replay):
        with pytest.raises(Refused, match="was dropped already"):
            act(replay)


def test_undo_brings_back_what_was_before_a_run_and_can_be_undone(shop: Shop) -> None:
    shop.run()
    before = shop.records()
    shop.prices = {"p1": 10, "p2": 2, "p7": 7}
    second = shop.run()
    after = shop.records()

    told = shop.project.undo(second, dry_run=True)
    assert (told.totals.changed, told.totals.removed) == (1, 1)
    assert shop.records() == after
    report = shop.project.undo(second, actor="ops", reason="wrong")

    assert shop.records() == before
    assert report.undo_run_id is not None
    [event] = [e for e in journal(shop.project) if e.kind == "run.undone"]
    assert (event.run_id, event.actor) == (second, "ops")
    assert event.detail.endswith(": wrong")
    assert shop.project.undo(second).totals.differences == 0
    shop.project.undo(report.undo_run_id)
    assert shop.records() == after
    assert [row.version for row in shop.project.connection.records.versions("product", "p1")] == [
        1,
        2,
        3,
        4,
    ]


def test_undo_leaves_alone_what_later_runs_have_changed(shop: Shop) -> None:
    shop.run()
    shop.prices = {"p1": 10, "p2": 20}
    second = shop.run()
    shop.prices = {"p1": 11}
    third = shop.run()

    report = shop.project.undo(second)

    assert (report.totals.changed, report.later.count) == (1, 1)
    assert report.later.first == [("product", "p1", third)]
    assert {key: shop.records()[key]["price"] for key in ("p1", "p2")} == {"p1": 11, "p2": 2}


def test_committed_replay_is_undone_as_any_run(shop: Shop) -> None:
    run_id = shop.run()
    before = shop.records()
    shop.change(extract="product = {**product, 'sku': product['sku'].upper()}")
    replay = shop.replay(run_id)
    shop.project.commit_replay(replay)

    shop.project.undo(replay)

    assert shop.records() == before


def refusals() -> dict[str, tuple[Callable[[Shop], Any], str]]:
    return {
        "nothing named": (lambda shop: shop.project.replay(), "replay what"),
        "no such run": (lambda shop: shop.project.replay(99), "no run 99"),
        "no quarantined": (
            lambda shop: shop.project.replay(1, quarantined=True),
            "no quarantined pages",
        ),
        "a replay": (lambda shop: shop.project.replay(shop.replay(1)), "is a replay itself"),
        "diff of a run": (lambda shop: shop.project.diff(1), "is not a replay"),
        "nothing since": (
            lambda shop: shop.project.replay(source="shop.example", since=4e9),
            "no pages",
        ),
    }


@pytest.mark.parametrize("name", refusals())
def test_what_can_not_be_replayed_is_refused_in_a_line(shop: Shop, name: str) -> None:
    shop.run()
    act, message = refusals()[name]

    with pytest.raises((Refused, UsageError), match=message):
        act(shop)


def test_replay_of_a_run_that_has_not_ended_is_refused(shop: Shop) -> None:
    run_id = shop.project.run("shop.example")

    with pytest.raises(Refused, match="when it has ended"):
        shop.project.replay(run_id)
    with pytest.raises(Refused, match="has ended can be undone"):
        shop.project.undo(run_id)


def test_renamed_step_is_told(shop: Shop) -> None:
    run_id = shop.run()
    path = shop.folder / f"{MODULE}.py"
    shop.project.close()
    path.write_text(path.read_text().replace("extract", "read"))
    sys.modules.pop(MODULE, None)
    shop.project = Project.load(shop.folder)

    with pytest.raises(Refused, match="has pages of extract; the pipeline has read now"):
        shop.project.replay(run_id)


def test_run_whose_jobs_are_no_longer_kept_is_told(shop: Shop) -> None:
    run_id = shop.run()
    shop.sql("DELETE FROM job WHERE unit = 'page'")
    shop.sql("DELETE FROM job_item WHERE job_id NOT IN (SELECT id FROM job)")

    with pytest.raises(Refused, match="no longer kept"):
        shop.project.replay(run_id)


def test_pipeline_without_pages_is_replayed_from_the_start(shop: Shop) -> None:
    path = shop.folder / f"{MODULE}.py"
    shop.project.close()
    path.write_text(
        """
from penstock import Pipeline
catalogue = Pipeline("catalogue")

@catalogue.step(unit="run")
async def read(ctx):
    for number in (1, 2):
        yield (await ctx.fetch(f"https://shop.example/p{number}")).json()

@catalogue.step(after="read", unit="candidate")
def persist(product, ctx):
    ctx.save("product", key=product["sku"], data=product)
"""
    )
    sys.modules.pop(MODULE, None)
    importlib.invalidate_caches()
    shop.project = Project.load(shop.folder)
    run_id = shop.run()

    with shop.without_requests():
        replay = shop.replay(run_id)

    assert shop.project.diff(replay).totals.same == 2
    assert shop.project.diff(replay).totals.differences == 0
