"""Incremental runs on virtual time: what is as it was costs next to nothing, and nothing new is missed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.store.upkeep import Keep
from tests.unit.site import HOST, PIPELINES, Shop, Site

DAY_S = 86400.0
# Simulated time begins in January 2027.
OLD = "2026-11-01"


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def shop(tmp_path: Path, site: Site) -> Shop:
    made = Shop(tmp_path / "project", site)
    made.write()
    return made


def test_full_run_fetches_everything_however_little_has_changed(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod=OLD, etag=True)
    site.page("/b", "two")
    for _ in range(3):
        shop.later(1)
        run = shop.run("full")
        assert site.take() == ["/sitemap.xml", "/a", "/b"]
        assert (run.state, run.pages_unchanged, run.skipped) == ("completed", 0, 0)


def test_page_whose_sitemap_names_no_change_is_not_asked_for(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod=OLD)
    shop.run("full")
    site.take()

    for _ in range(3):
        shop.later(1)
        run = shop.run("incremental")
        assert site.take() == ["/sitemap.xml"]
        assert (run.state, run.pages, run.pages_unchanged, run.skipped) == ("completed", 1, 1, 1)
        assert shop.skips(run) == [f"unchanged: its sitemap or feed names no change since {OLD}"]


def test_page_whose_feed_names_no_change_is_not_asked_for(shop: Shop, site: Site) -> None:
    def feed(updated: str) -> str:
        entry = f'<entry><link href="{HOST}/a"/><updated>{updated}</updated></entry>'
        return f'<feed xmlns="http://www.w3.org/2005/Atom">{entry}</feed>'

    by_feed = PIPELINES.replace(
        'async for url in ctx.sitemap(ctx.params["sitemap"]):', "async for entry in ctx.feed(FEED):"
    ).replace('yield {{"url": url}}', 'yield {{"url": entry["url"]}}')
    shop.write(pipelines=f'FEED = "{HOST}/feed"\n{by_feed}')
    site.page("/a", "one")
    site.page("/feed", feed(OLD))
    shop.run("full")
    site.take()

    shop.later(1)
    run = shop.run("incremental")
    assert site.take() == ["/feed"]
    assert shop.skips(run) == [f"unchanged: its sitemap or feed names no change since {OLD}"]

    site.page("/feed", feed("2027-01-15T20:00:00Z"))
    shop.later(1)
    shop.run("incremental")
    assert site.take() == ["/feed", "/a"]


def test_page_that_its_sitemap_names_as_changed_is_fetched(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod=OLD)
    site.page("/b", "two", lastmod=OLD)
    shop.run("full")
    site.take()

    site.page("/b", "three", lastmod="2027-01-15T20:00:00Z")
    shop.later(1)
    run = shop.run("incremental")

    assert site.take() == ["/sitemap.xml", "/b"]
    assert (run.pages, run.pages_unchanged, run.updated) == (2, 1, 1)
    assert shop.records()["/b"]["text"] == "three"


def test_new_page_is_fetched_without_conditions(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod=OLD, etag=True)
    shop.run("full")
    site.take()

    site.page("/new", "two", lastmod=OLD, etag=True)
    shop.later(1)
    run = shop.run("incremental")

    assert site.conditional == []
    assert site.take() == ["/sitemap.xml", "/new"]
    assert (run.inserted, run.pages_unchanged) == (1, 1)


def test_site_is_asked_whether_it_changed_where_the_sitemap_does_not_say(
    shop: Shop, site: Site
) -> None:
    site.page("/a", "one", etag=True)
    shop.run("full")
    site.take()
    shop.later(1)
    run = shop.run("incremental")

    assert site.conditional == ["/a"]
    assert site.take() == ["/sitemap.xml", "/a"]
    assert (run.state, run.pages_unchanged, run.requests) == ("completed", 1, 2)
    assert shop.skips(run) == ["unchanged: the site says so"]


def test_last_modified_is_used_where_there_is_no_etag(shop: Shop, site: Site) -> None:
    site.page("/a", "one", headers={"last-modified": "Sun, 01 Nov 2026 10:00:00 GMT"})
    shop.run("full")
    site.take()
    shop.later(1)
    run = shop.run("incremental")

    assert site.conditional == ["/a"]
    assert run.pages_unchanged == 1


def test_same_content_is_unchanged_where_the_site_can_not_tell(shop: Shop, site: Site) -> None:
    site.page("/a", "one")
    shop.run("full")
    site.take()
    shop.later(1)
    run = shop.run("incremental")

    assert site.take() == ["/sitemap.xml", "/a"]
    assert (run.state, run.pages_unchanged) == ("completed", 1)
    assert shop.skips(run) == ["unchanged: its content is the same"]

    site.page("/a", "other")
    run = shop.run("incremental")
    assert (run.updated, run.pages_unchanged) == (1, 0)


@pytest.mark.parametrize(
    "lastmod",
    ["", "yesterday", "2099-01-01", "2027", "2027-01", "2027-01-15T08:00", "<![CDATA[]]>"],
)
def test_lastmod_that_says_nothing_hides_no_change(shop: Shop, site: Site, lastmod: str) -> None:
    site.page("/a", "one", lastmod=lastmod)
    shop.run("full")
    site.take()

    site.page("/a", "two", lastmod=lastmod)
    run = shop.run("incremental")

    assert site.take() == ["/sitemap.xml", "/a"]
    assert (run.updated, run.pages_unchanged) == (1, 0)


def test_lastmod_that_is_told_in_another_way_is_the_same(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod="2026-11-01T10:00:00Z")
    shop.run("full")
    site.take()

    shop.later(1)
    site.page("/a", "one", lastmod="2026-11-01T12:00:00+02:00")
    run = shop.run("incremental")

    assert site.take() == ["/sitemap.xml"]
    assert run.pages_unchanged == 1


def test_page_that_changed_later_on_the_day_it_was_fetched_is_found(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod="2027-01-15")
    shop.run("full")
    site.take()

    site.page("/a", "two", lastmod="2027-01-15")
    shop.later(0.25)
    assert shop.run("incremental").updated == 1
    site.take()

    shop.later(3)
    assert shop.run("incremental").pages_unchanged == 1
    assert site.take() == ["/sitemap.xml", "/a"]
    # By now it was fetched long after that day: the sitemap is enough.
    shop.later(1)
    assert shop.run("incremental").pages_unchanged == 1
    assert site.take() == ["/sitemap.xml"]


def test_sitemap_that_names_no_time_any_more_is_not_taken_at_its_old_word(
    shop: Shop, site: Site
) -> None:
    site.page("/a", "one", lastmod=OLD)
    shop.run("full")
    site.take()

    site.page("/a", "two")
    shop.later(1)
    run = shop.run("incremental")

    assert site.take() == ["/sitemap.xml", "/a"]
    assert run.updated == 1


def test_changed_sitemap_and_unchanged_page_are_learnt_once(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod=OLD)
    shop.run("full")
    site.page("/a", "one", lastmod="2027-01-15T12:00:00Z")
    shop.later(1)
    site.take()
    assert shop.run("incremental").pages_unchanged == 1
    assert site.take() == ["/sitemap.xml", "/a"]

    shop.later(1)
    assert shop.run("incremental").pages_unchanged == 1
    assert site.take() == ["/sitemap.xml"]


def test_unchanged_sitemap_is_read_from_its_snapshot(shop: Shop, site: Site) -> None:
    site.sitemap_has_etag = True
    site.page("/a", "one", lastmod=OLD)
    site.page("/b", "two", lastmod=OLD)
    shop.run("full")
    site.take()
    shop.later(1)
    run = shop.run("incremental")

    assert site.conditional == ["/sitemap.xml"]
    assert (run.state, run.pages, run.pages_unchanged) == ("completed", 2, 2)


def test_new_code_extracts_unchanged_pages_again_without_the_network(
    shop: Shop, site: Site
) -> None:
    site.page("/a", "one", lastmod=OLD)
    site.page("/b", "two", etag=True)
    shop.run("full")
    site.take()

    shop.write("v2")
    shop.later(1)
    run = shop.run("incremental")

    # What the sitemap vouches for is not asked for at all; of the other, only whether it changed.
    assert site.conditional == ["/b"]
    assert site.take() == ["/sitemap.xml", "/b"]
    assert (run.state, run.updated, run.pages_unchanged) == ("completed", 2, 0)
    assert {record["made"] for record in shop.records().values()} == {"v2"}

    shop.later(1)
    assert shop.run("incremental").pages_unchanged == 2


@pytest.mark.parametrize("change", [{"params": {"mark": "!"}}, {"threshold": 0.5}])
def test_new_configuration_that_matters_extracts_unchanged_pages_again(
    shop: Shop, site: Site, change: dict[str, Any]
) -> None:
    site.page("/a", "one", lastmod=OLD)
    shop.run("full")
    site.take()

    shop.write(**change)
    shop.later(1)
    run = shop.run("incremental")

    assert site.take() == ["/sitemap.xml"]
    assert (run.pages_unchanged, run.candidates) == (0, 1)


@pytest.mark.parametrize(
    "change", [{"limits": {"concurrency": 2}}, {"priority": 7}, {"timeout": "9s"}]
)
def test_new_configuration_that_does_not_matter_extracts_nothing(
    shop: Shop, site: Site, change: dict[str, Any]
) -> None:
    site.page("/a", "one", lastmod=OLD)
    shop.run("full")
    shop.write(**change)
    shop.later(1)
    assert shop.run("incremental").pages_unchanged == 1


def test_page_whose_extraction_failed_is_never_skipped(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod=OLD, etag=True)
    shop.run("full")
    site.page("/a", "broken", lastmod="2027-01-15T12:00:00Z", etag=True)
    shop.later(1)
    assert shop.run("incremental").state == "failed"

    # As it was when it was last done with, and announced as it was when it failed: both say nothing.
    site.take()
    shop.later(1)
    assert shop.run("incremental").state == "failed"
    assert site.take() != ["/sitemap.xml"]
    site.page("/a", "one", lastmod=OLD, etag=True)
    run = shop.run("incremental")
    assert (run.state, run.pages_unchanged, run.candidates) == ("completed", 0, 1)


def test_page_of_which_a_candidate_failed_is_extracted_again(shop: Shop, site: Site) -> None:
    site.page("/a", "poison", lastmod=OLD)
    assert shop.run("full").quarantined == 1
    site.take()
    shop.later(1)
    run = shop.run("incremental")

    assert (run.pages_unchanged, run.quarantined) == (0, 1)
    assert site.take() == ["/sitemap.xml"]


def test_page_that_its_step_skipped_is_done_with(shop: Shop, site: Site) -> None:
    site.page("/a", "unwanted", lastmod=OLD)
    first = shop.run("full")
    assert (first.skipped, first.pages_unchanged) == (1, 0)
    site.take()
    shop.later(1)
    run = shop.run("incremental")

    assert site.take() == ["/sitemap.xml"]
    assert run.pages_unchanged == 1


def test_snapshot_that_retention_dropped_is_fetched_again(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod=OLD, etag=True)
    site.page("/b", "two", etag=True)
    shop.run("full")
    shop.later(10)
    drop_snapshots(shop)
    site.take()

    # Unchanged and done with: nobody needs the snapshot.
    run = shop.run("incremental")
    assert site.conditional == []
    assert site.take() == ["/sitemap.xml", "/b"]
    assert run.pages_unchanged == 2

    shop.later(10)
    drop_snapshots(shop)
    shop.write("v2")
    run = shop.run("incremental")
    assert sorted(site.take()) == ["/a", "/b", "/sitemap.xml"]
    assert (run.state, run.updated) == ("completed", 2)


def drop_snapshots(shop: Shop) -> None:
    with shop.project() as project:
        keep = Keep(None, None, None, snapshots_s=DAY_S)
        while project.connection.upkeep.prune(keep):
            pass


def test_snapshot_that_can_not_be_read_is_fetched_again(shop: Shop, site: Site) -> None:
    site.page("/a", "one", lastmod=OLD)
    shop.run("full")
    for segment in (shop.folder / "snapshots").rglob("*.warc*"):
        segment.unlink()
    site.take()
    shop.write("v2")
    shop.later(1)
    run = shop.run("incremental")

    assert site.take() == ["/sitemap.xml", "/a"]
    assert (run.state, run.updated) == ("completed", 1)


def test_redirected_page_keeps_the_address_it_ended_at(shop: Shop, site: Site) -> None:
    site.page("/old", "", location="/target")
    site.page("/target", "one", etag=True)
    site.pages["/old"].lastmod = site.pages["/target"].lastmod = OLD
    shop.run("full")
    site.take()

    shop.write("v2")
    shop.later(1)
    shop.run("incremental")
    assert site.take() == ["/sitemap.xml"]
    assert set(shop.records()) == {"/target"}


def test_answer_about_another_page_than_ours_is_not_believed(shop: Shop, site: Site) -> None:
    site.page("/old", "", location="/first")
    site.page("/first", "same", etag=True)
    shop.run("full")
    # Elsewhere now, where the same content has the same tag: it is another page all the same.
    site.page("/second", "same", etag=True)
    site.page("/old", "", location="/second")
    del site.pages["/first"]
    shop.later(1)
    site.take()
    run = shop.run("incremental")

    assert run.state == "completed"
    assert site.take().count("/old") == 2


TWO_STEPS = (
    PIPELINES
    + """

@shop.step(after="extract", unit="page", key="url", retry="fast")
async def images(page, ctx):
    response = await ctx.fetch(page["url"])
    if "no images" in response.text:
        raise ValueError("no images")
    ctx.save("images", key=page["url"], data={{"length": len(response.text)}})
"""
)


def test_page_that_two_steps_fetch_is_left_alone_by_both_or_neither(shop: Shop, site: Site) -> None:
    shop.write(pipelines=TWO_STEPS)
    site.page("/a", "one", etag=True)
    shop.run("full")
    site.take()
    shop.later(1)
    run = shop.run("incremental")
    assert (run.pages, run.pages_unchanged) == (1, 1)
    assert site.take() == ["/sitemap.xml", "/a"]

    site.page("/a", "longer", etag=True)
    run = shop.run("incremental")
    assert (run.pages, run.pages_unchanged, run.updated) == (2, 0, 2)

    # The second step failed: the first has to hand the page on again.
    site.page("/a", "no images", etag=True)
    assert shop.run("incremental").quarantined == 1
    shop.later(1)
    run = shop.run("incremental")
    assert (run.pages, run.pages_unchanged, run.quarantined) == (2, 0, 1)


# The beginning of a pipeline that reads one page; how it does so comes after.
ONE_PAGE = (
    PIPELINES
    + """

one = Pipeline("one")


@one.step(unit="run")
async def find(ctx):
    yield {{"url": "https://shop.example/a"}}


@one.step(after="find", unit="page", key="url")
async def read(page, ctx):
"""
)
TWO_PAGES = (
    ONE_PAGE
    + """
    first = await ctx.fetch(page["url"])
    second = await ctx.fetch(page["url"] + "/more")
    ctx.save("page", key=page["url"], data={{"text": first.text + second.text}})
"""
)


def test_change_of_any_page_that_belongs_to_it_is_found(shop: Shop, site: Site) -> None:
    shop.write(pipelines=TWO_PAGES, pipeline="visiting:one")
    site.page("/a", "one", etag=True)
    site.page("/a/more", "two", etag=True)
    shop.run("full")
    site.take()
    shop.later(1)
    run = shop.run("incremental")
    assert site.conditional == ["/a", "/a/more"]
    assert (run.state, run.pages_unchanged, run.unchanged) == ("completed", 1, 0)

    site.take()
    site.page("/a/more", "three", etag=True)
    run = shop.run("incremental")
    assert (run.pages_unchanged, run.updated) == (0, 1)
    assert shop.records()["/a"] == {"text": "onethree"}

    shop.later(1)
    assert shop.run("incremental").pages_unchanged == 1


BEARING = (
    ONE_PAGE
    + """
    try:
        text = (await ctx.fetch(page["url"])).text
    except Exception:
        text = "nothing"
    ctx.save("page", key=page["url"], data={{"text": text}})
"""
)


def test_step_that_catches_everything_can_not_overwrite_what_is_unchanged(
    shop: Shop, site: Site
) -> None:
    shop.write(pipelines=BEARING, pipeline="visiting:one")
    site.page("/a", "one", etag=True)
    shop.run("full")
    shop.later(1)
    run = shop.run("incremental")

    assert (run.state, run.pages_unchanged) == ("completed", 1)
    assert shop.records()["/a"] == {"text": "one"}


POSTING = (
    ONE_PAGE
    + """
    response = await ctx.fetch(page["url"], headers={{"accept-language": "fr"}})
    ctx.save("page", key=page["url"], data={{"text": response.text}})
"""
)


def test_fetch_with_words_of_its_own_is_never_taken_for_the_page(shop: Shop, site: Site) -> None:
    shop.write(pipelines=POSTING, pipeline="visiting:one")
    site.page("/a", "one", etag=True)
    shop.run("full")
    site.take()
    shop.later(1)
    run = shop.run("incremental")

    assert site.conditional == []
    assert site.take() == ["/a"]
    assert run.pages_unchanged == 0


def test_disallowed_page_is_counted_and_not_asked_for(shop: Shop, site: Site) -> None:
    site.robots = "User-agent: *\nDisallow: /private"
    site.page("/a", "one")
    site.page("/private/b", "two")
    for kind in ("full", "incremental"):
        run = shop.run(kind)
        assert (run.state, run.disallowed, run.skipped >= 1) == ("completed", 1, True)
        assert "/private/b" not in site.take()


def test_incremental_run_of_a_source_that_never_ran_fetches_everything(
    shop: Shop, site: Site
) -> None:
    site.page("/a", "one", lastmod=OLD)
    run = shop.run("incremental")
    assert site.take() == ["/sitemap.xml", "/a"]
    assert (run.state, run.inserted) == ("completed", 1)


def test_page_that_is_gone_fails_and_is_not_taken_for_unchanged(shop: Shop, site: Site) -> None:
    site.page("/a", "one", etag=True)
    site.page("/b", "two", etag=True)
    shop.run("full")
    site.pages["/a"].status = 410
    site.pages["/a"].etag = False
    shop.later(1)
    run = shop.run("incremental")
    assert (run.state, run.pages_unchanged, run.quarantined) == ("partial", 1, 1)


def test_thousands_of_unchanged_pages_cost_one_request(shop: Shop, site: Site) -> None:
    shop.write(limits={"concurrency": 500})
    for number in range(2000):
        site.page(f"/{number}", f"page {number}", lastmod=OLD)
    shop.run("full")
    site.take()
    shop.later(1)
    run = shop.run("incremental")
    assert (run.state, run.pages, run.pages_unchanged) == ("completed", 2000, 2000)
    assert site.take() == ["/sitemap.xml"]


SLOWLY = (
    PIPELINES
    + """

import asyncio

slowly = Pipeline("slowly")


@slowly.step(unit="run")
async def find(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {{"url": url}}


@slowly.step(after="find", unit="run")
async def look(page):
    yield page
    await asyncio.sleep(5)


@slowly.step(after="look", unit="page", key="url")
async def read(page, ctx):
    response = await ctx.fetch(page["url"])
    ctx.save("page", key=page["url"], data={{"text": response.text}})
"""
)


def test_no_page_is_begun_before_its_announcement_is_known(shop: Shop, site: Site) -> None:
    shop.write(pipelines=SLOWLY, pipeline="visiting:slowly")
    site.page("/a", "one", lastmod=OLD)
    site.page("/b", "two", lastmod=OLD)
    shop.run("full")
    site.take()
    shop.later(1)
    run = shop.run("incremental")
    assert site.take() == ["/sitemap.xml"]
    assert run.pages_unchanged == 2


COMMITTING = (
    ONE_PAGE
    + """
    ctx.note("before")
    await ctx.commit()
    response = await ctx.fetch(page["url"])
    ctx.save("page", key=page["url"], data={{"text": response.text}})
    await ctx.commit()
    if "broken" in response.text:
        raise ValueError("after all")
"""
)


def test_what_was_committed_before_the_end_does_not_make_a_page_done(
    shop: Shop, site: Site
) -> None:
    shop.write(pipelines=COMMITTING, pipeline="visiting:one")
    site.page("/a", "broken", etag=True)
    assert shop.run("full").state == "failed"
    shop.later(1)
    run = shop.run("incremental")
    assert (run.state, run.pages_unchanged) == ("failed", 0)


def test_change_of_a_module_that_a_step_uses_is_a_new_version(shop: Shop, site: Site) -> None:
    pipelines = "import visiting_parts\nfrom visiting_words import WORD\n" + PIPELINES
    site.page("/a", "one", lastmod=OLD)
    parts, words = shop.folder / "visiting_parts.py", shop.folder / "visiting_words.py"

    def run(part: str, deep: str, word: str) -> int:
        for name in ("visiting_parts", "visiting_words", "visiting_deep"):
            sys.modules.pop(name, None)
        (shop.folder / "visiting_deep.py").write_text(f"DEEP = {deep!r}")
        parts.write_text(f"from visiting_deep import DEEP\nimport visiting_deep\nPART = {part!r}")
        words.write_text(f"class WORD:\n    text = {word!r}")
        shop.write(pipelines=pipelines)
        shop.later(1)
        return shop.run("incremental").pages_unchanged

    assert run("a", "a", "a") == 0
    assert run("a", "a", "a") == 1
    assert run("b", "a", "a") == 0
    assert run("b", "b", "a") == 0
    assert run("b", "b", "b") == 0
    assert run("b", "b", "b") == 1
