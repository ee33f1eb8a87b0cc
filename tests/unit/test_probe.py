"""Probes on virtual time: one item the whole way, nothing saved, and a verdict."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.jobs.effects import (
    Announced,
    Covered,
    Effects,
    Extracted,
    Mark,
    Note,
    Raised,
    Rejection,
    Save,
)
from penstock.jobs.effects.effects import dry
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.probe import ProbeResult, is_good, verdict_of, without_retries
from penstock.jobs.run import RunKind
from penstock.pipeline.pipeline import Pipeline
from penstock.store.rows import RunRow
from tests.unit.site import PIPELINES, Shop, Site


@pytest.fixture
def site() -> Site:
    made = Site()
    for number in range(5):
        made.page(f"/{number}", f"page {number}")
    return made


@pytest.fixture
def shop(tmp_path: Path, site: Site) -> Shop:
    made = Shop(tmp_path / "project", site)
    made.write()
    return made


def rows_of(shop: Shop, *tables: str) -> dict[str, list[Any]]:
    """What these tables hold, whoever wrote it."""
    import apsw

    connection = apsw.Connection(str(shop.folder / "penstock.db"))
    try:
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    finally:
        connection.close()


SAVED = ("record", "record_version", "checkpoint", "signal", "reject", "coverage", "page", "staged")


def assert_nothing_saved(shop: Shop) -> None:
    assert {name: rows for name, rows in rows_of(shop, *SAVED).items() if rows} == {}


def test_probe_takes_one_item_the_whole_way_and_saves_nothing(shop: Shop, site: Site) -> None:
    run = shop.run("probe")

    assert site.take() == ["/sitemap.xml", "/0"]
    assert (run.state, run.end_reason) == ("completed", "ok")
    assert (run.pages, run.candidates, run.succeeded) == (1, 1, 3)
    assert (run.inserted, run.updated, run.unchanged) == (0, 0, 0)
    # What it cost was spent.
    assert run.requests == 2
    assert_nothing_saved(shop)


def test_what_a_probe_would_have_saved_is_in_the_journal_and_what_it_fetched_is_kept(
    shop: Shop,
) -> None:
    run = shop.run("probe")
    with shop.project() as project:
        events = project.connection.journal.events(run_id=run.id, limit=100)
    noted = [event.detail for event in events if event.kind == "job.noted"]
    assert noted == ["would save page https://shop.example/0"]
    assert len(rows_of(shop, "snapshot")["snapshot"]) == 2


def test_page_that_fails_is_tried_once_and_the_verdict_says_why(shop: Shop, site: Site) -> None:
    site.pages["/0"].status = 500
    run = shop.run("probe")

    assert site.take() == ["/sitemap.xml", "/0"]
    assert run.state == "failed"
    assert run.end_reason.startswith("failed: FetchError: status 500")
    assert run.retried == 0


def test_candidate_that_fails_makes_a_failed_probe(shop: Shop, site: Site) -> None:
    site.page("/0", "poison")
    run = shop.run("probe")
    assert (run.state, run.end_reason) == ("failed", "failed: ValueError: can't be saved")


def test_sitemap_that_can_not_be_had_makes_a_failed_probe(shop: Shop, site: Site) -> None:
    shop.write(params={"sitemap": "https://shop.example/none.xml"})
    run = shop.run("probe")
    assert site.take() == ["/none.xml"]
    assert run.state == "failed"


def test_host_that_asks_to_wait_ends_a_probe_at_once(shop: Shop, site: Site) -> None:
    site.page("/0", "later", status=429, headers={"retry-after": "3000"})
    began = shop.clock.now()
    run = shop.run("probe")

    assert (run.state, run.end_reason) == ("partial", "degraded: it was asked to wait")
    assert shop.clock.now() - began < 100
    with shop.project() as project:
        # The host is left alone all the same.
        assert project.connection.hosts.closed() == {
            "shop.example": pytest.approx(began + 3000, abs=60)
        }


def test_breaker_that_a_probe_opens_does_not_make_it_wait(shop: Shop, site: Site) -> None:
    shop.write(breaker={"at_least": 1})
    site.page("/0", "down", status=502)
    began = shop.clock.now()
    run = shop.run("probe")
    assert site.take() == ["/sitemap.xml", "/0"]
    assert (run.state, run.end_reason[:19]) == ("failed", "failed: FetchError:")
    assert shop.clock.now() - began < 100


def test_probe_that_its_budget_stops_is_not_the_sources_fault(shop: Shop) -> None:
    shop.write(budget={"requests": "1/d"})
    run = shop.run("probe")
    assert (run.state, run.end_reason) == ("partial", "degraded: its budget is exhausted")


def test_nothing_found_and_nothing_made_of_it_is_degraded(shop: Shop, site: Site) -> None:
    site.page("/0", "unwanted")
    run = shop.run("probe")
    assert (run.state, run.end_reason) == ("partial", "degraded: nothing came out")

    site.pages.clear()
    run = shop.run("probe")
    assert (run.state, run.end_reason) == ("partial", "degraded: nothing came out")


def test_slow_page_is_degraded(shop: Shop, site: Site) -> None:
    shop.write(timeout="30s")
    site.pages["/0"].takes_s = 16.0
    run = shop.run("probe")
    assert (run.state, run.end_reason) == ("partial", "degraded: it was slow")


JUDGING = (
    PIPELINES
    + """

judging = Pipeline("judging")


@judging.step(unit="run")
async def find(ctx):
    for number in range(3):
        yield {{"url": f"https://shop.example/{{number}}"}}


@judging.step(after="find", unit="page", key="url")
async def read(page, ctx):
    await ctx.fetch(page["url"])
    ctx.checkpoint({{"at": page["url"]}})
    ctx.signal("seen", url=page["url"])
    for number in range(10):
        yield {{"sku": f"{{page['url']}}-{{number}}"}}


@judging.step(after="read", unit="candidate", key="sku")
def persist(product, ctx):
    ctx.save("product", key=product["sku"], data=product, score=0.2)


@judging.step(after="read", unit="candidate", key="sku", priority=1)
def index(product, ctx):
    ctx.save("index", key=product["sku"], data=product, score=0.9)


@judging.step(after="persist", gather=True)
async def export(ctx):
    raise ValueError("there is nothing to export")
"""
)


def test_each_following_stage_gets_one_item_and_nothing_is_gathered(shop: Shop, site: Site) -> None:
    shop.write(pipelines=JUDGING, pipeline="visiting:judging")
    run = shop.run("probe")

    assert site.take() == ["/0"]
    assert (run.state, run.end_reason) == ("completed", "ok")
    assert (run.pages, run.candidates) == (1, 2)
    assert_nothing_saved(shop)


def test_what_is_rejected_is_degraded_and_not_kept(shop: Shop) -> None:
    shop.write(pipelines=JUDGING, pipeline="visiting:judging", threshold=0.5)
    run = shop.run("probe")
    assert (run.state, run.end_reason) == ("partial", "degraded: what it found was rejected")
    assert_nothing_saved(shop)


COMMITTING = (
    PIPELINES
    + """

committing = Pipeline("committing")


@committing.step(unit="run")
async def find(ctx):
    ctx.checkpoint("begun")
    ctx.note("looked")
    await ctx.commit()
    yield {{"url": "https://shop.example/0"}}


@committing.step(after="find", unit="page", key="url")
async def read(page, ctx):
    response = await ctx.fetch(page["url"])
    for part in range(3):
        ctx.save("part", key=part, data={{"text": response.text}})
        ctx.checkpoint(part)
        ctx.signal("part", number=part)
        await ctx.commit()
"""
)


def test_what_a_step_commits_on_its_way_is_not_saved_either(shop: Shop) -> None:
    shop.write(pipelines=COMMITTING, pipeline="visiting:committing")
    run = shop.run("probe")
    assert (run.state, run.end_reason) == ("completed", "ok")
    assert_nothing_saved(shop)
    with shop.project() as project:
        events = project.connection.journal.events(run_id=run.id, limit=100)
    noted = [event.detail for event in events if event.kind == "job.noted"]
    assert noted == ["looked", "would save part 0", "would save part 1", "would save part 2"]


ONE_STEP = (
    PIPELINES
    + """

SEEN = []
single = Pipeline("single")


@single.step(unit="run")
async def sync(ctx):
    try:
        for number in range(1000):
            SEEN.append(number)
            ctx.save("row", key=number, data={{"n": number}})
            if number % 10 == 9:
                ctx.checkpoint(number)
                await ctx.commit()
    except Exception:
        raise AssertionError("a probe must not end a step by an error that it can catch")
    finally:
        SEEN.append("closed")


plain = Pipeline("plain")


@plain.step(unit="run")
def listing(ctx):
    try:
        for number in range(1000):
            SEEN.append(number)
            yield {{"number": number}}
    finally:
        SEEN.append("closed")


@plain.step(after="listing", unit="run")
def widened(item):
    return [item][0]


@plain.step(after="widened", unit="page", key="number")
def halved(item):
    for part in range(100):
        yield {{**item, "part": part}}


@plain.step(after="halved", unit="candidate")
def kept(item, ctx):
    ctx.save("row", key=item["number"], data=item)
"""
)


@pytest.mark.parametrize(
    ("pipeline", "seen"), [("single", [0, "closed"]), ("plain", [0, "closed"])]
)
def test_step_of_either_colour_is_stopped_after_its_first_item(
    shop: Shop, pipeline: str, seen: list[object]
) -> None:
    shop.write(pipelines=ONE_STEP, pipeline=f"visiting:{pipeline}")
    with shop.project() as project:
        run_id = project.run("shop.example", "probe")
        shop.work(project)
        run = project.require_run(run_id)
        import visiting  # type: ignore[import-not-found]

        assert seen == visiting.SEEN
    assert (run.state, run.end_reason) == ("completed", "ok")
    assert_nothing_saved(shop)


def test_probe_always_goes_to_the_network_and_leaves_no_trace_for_incremental_runs(
    shop: Shop, site: Site
) -> None:
    site.page("/0", "page 0", lastmod="2026-11-01", etag=True)
    shop.run("full")
    before = rows_of(shop, "page")
    site.take()
    shop.later(1)
    assert shop.run("probe").end_reason == "ok"
    assert site.conditional == []
    assert site.take() == ["/sitemap.xml", "/0"]
    assert rows_of(shop, "page") == before

    site.page("/0", "broken", lastmod="2026-11-01", etag=True)
    assert shop.run("probe").state == "failed"
    assert rows_of(shop, "page") == before


def test_cancelled_probe_has_no_verdict(shop: Shop) -> None:
    with shop.project() as project:
        run_id = project.run("shop.example", "probe")
        list(project.cancel(run_id))
        run: RunRow = project.require_run(run_id)
    assert (run.state, run.end_reason) == ("cancelled", "")


def test_plan_of_a_probe_has_no_gather_and_nothing_that_only_a_gather_leads_to() -> None:
    pipeline = Pipeline("wide")
    pipeline.step(unit="run")(named("find"))
    pipeline.step(after="find", unit="page")(named("read", "item"))
    pipeline.step(after="read", gather=True)(named("sum_up"))
    pipeline.step(after="sum_up", unit="candidate")(named("publish", "item"))
    pipeline.step(after=["sum_up", "read"], unit="candidate")(named("both", "item"))
    graph = pipeline.compile()

    assert [stage.name for stage in graph.plan(5, RunKind.PROBE).stages] == ["find", "read", "both"]
    assert len(graph.plan(5, RunKind.FULL).stages) == 5


def named(name: str, *takes: str) -> Any:
    made: dict[str, Any] = {}
    exec(f"def {name}({', '.join(takes)}):\n    return None", made)  # noqa: S102
    return made[name]


def test_of_everything_an_attempt_may_leave_a_probe_keeps_what_changes_nothing() -> None:
    everything = Effects(
        saves=[Save("product", "a", b"{}", None, "replace")],
        marks=[Mark("inbox", b"1")],
        signals=[Raised("gap", b"{}")],
        notes=[Note("seen")],
        rejections=[Rejection("low", "too low")],
        announced=[Announced("https://a", "2026")],
        extracted=[Extracted("https://a", "hash")],
        covered=[Covered("x", 0.0, 1.0)],
        spent={"requests": 2.0},
    )
    left = dry(everything)

    assert left.spent == {"requests": 2.0}
    assert left.probed == {"would_save": 1, "rejected": 1}
    assert [note.text for note in left.notes] == [
        "seen",
        "would save product a",
        "would reject: too low",
    ]
    kept = {"notes", "spent", "probed", "saved_before"}
    for name in {each.name for each in fields(Effects)} - kept:
        assert not getattr(left, name), name


def ended(state: JobState, **about: Any) -> Settlement:
    return Settlement(1, 1, state, **about)


def test_no_end_of_a_probe_leads_to_another_try_or_a_long_wait() -> None:
    failed = without_retries(ended(JobState.WAITING, delay_s=9.0, spends_try=True), 60.0)
    assert (failed.state, failed.delay_s) == (JobState.QUARANTINED, 0.0)
    throttled = without_retries(ended(JobState.WAITING, delay_s=9.0, is_throttle=True), 60.0)
    assert (throttled.state, throttled.effects.probed) == (JobState.SKIPPED, {"throttled": 1})
    slow = without_retries(ended(JobState.SUCCEEDED, took_s=31.0), 60.0)
    assert (slow.state, slow.effects.probed) == (JobState.SUCCEEDED, {"slow": 1})
    away = without_retries(ended(JobState.WAITING, delay_s=900.0, closes_for_s=900.0), 60.0)
    assert (away.state, away.effects.probed) == (JobState.SKIPPED, {"throttled": 1})
    assert failed.is_final
    assert throttled.is_final
    # Our own rate is no fault of the source: a moment later it goes on.
    paced = ended(JobState.WAITING, delay_s=2.0)
    assert without_retries(paced, 60.0).state is JobState.WAITING


@pytest.mark.parametrize(
    ("seen", "words", "good"),
    [
        (ProbeResult(would_save=1), "ok", True),
        (ProbeResult(), "degraded: nothing came out", True),
        (ProbeResult(would_save=1, rejected=1), "degraded: what it found was rejected", True),
        (ProbeResult(would_save=1, slow=1), "degraded: it was slow", False),
        (ProbeResult(would_save=1, throttled=1), "degraded: it was asked to wait", False),
        (ProbeResult(would_save=1, failed=1, error="no"), "failed: no", False),
        (ProbeResult(failed=1), "failed", False),
    ],
)
def test_verdict_is_the_worst_that_was_seen(seen: ProbeResult, words: str, good: bool) -> None:
    assert verdict_of(seen)[1] == words
    assert is_good(seen) is good
    assert msgspec.structs.asdict(seen)
