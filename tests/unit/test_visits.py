"""The pages of an attempt: done with when it ends well, and not before."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.worker.child_protocol import error_from, refusal_of
from penstock.http.response import Response
from penstock.jobs.effects import Effects, Extracted
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Outcome, Skip, Skipped, Snooze, Succeeded, Unchanged
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.visits import Visits, is_page
from tests.unit.performing import ListedServices, attempt, begun


class Pages(ListedServices):
    """Pages as a worker hands them over: kept, and with the hash of their content."""

    refusal: Exception | None = None

    async def fetch(self, job: Claimed, url: str, **options: Any) -> Response:
        self.fetched.append(url)
        if self.refusal is not None:
            raise self.refusal
        return page(url)


def page(url: str, **about: Any) -> Response:
    return Response(url, url, 200, {}, b"page", 5.0, snapshot_id=3, content_hash="h", **about)


def a_pipeline(step: Any, unit: str = "page") -> Pipeline:
    pipeline = begun()
    step.__name__ = "act"
    pipeline.step(after="begin", unit=unit)(step)
    return pipeline


def run(step: Any, unit: str = "page", refusal: Exception | None = None) -> tuple[Outcome, Pages]:
    services = Pages()
    services.refusal = refusal
    return attempt(a_pipeline(step, unit), "act", {}, services), services


def extracted(effects: Effects) -> list[tuple[str, int]]:
    return [(each.url, each.parts) for each in effects.extracted]


async def two_pages(item: Any, ctx: Any) -> None:
    await ctx.fetch("https://a/1")
    ctx.note("half")
    await ctx.commit()
    await ctx.fetch("https://a/2")
    await ctx.fetch("https://a/1")


def test_pages_are_done_with_at_the_end_and_not_with_what_is_committed_before() -> None:
    outcome, services = run(two_pages)
    assert isinstance(outcome, Succeeded)
    assert extracted(outcome.effects) == [("https://a/1", 2), ("https://a/2", 2)]
    assert [extracted(flush) for flush in services.flushed] == [[]]


def test_only_page_level_steps_are_done_with_pages() -> None:
    outcome, services = run(two_pages, "candidate")
    assert isinstance(outcome, Succeeded)
    assert outcome.effects.extracted == []
    assert [flush.extracted for flush in services.flushed] == [[]]


def test_attempt_that_fails_or_waits_is_done_with_nothing() -> None:
    for error in (ValueError("no"), Snooze(5.0)):

        async def act(item: Any, ctx: Any, error: Exception = error) -> None:
            await ctx.fetch("https://a/1")
            ctx.note("on the way")
            raise error

        outcome, services = run(act)
        assert not isinstance(outcome, Succeeded)
        assert [flush.extracted for flush in services.flushed if flush.extracted] == []


def test_step_that_skips_is_done_with_its_page() -> None:
    async def act(item: Any, ctx: Any) -> None:
        await ctx.fetch("https://a/1")
        raise Skip("not a product")

    outcome, services = run(act)
    assert outcome == Skipped("not a product")
    assert [extracted(flush) for flush in services.flushed] == [[("https://a/1", 1)]]


LOOKED_AT = Extracted("https://a/1", "h", 3, 5.0, "v", is_same=True)


@pytest.mark.parametrize("seen", [None, LOOKED_AT])
def test_unchanged_page_ends_the_attempt_whatever_the_step_catches(seen: Extracted | None) -> None:
    async def act(item: Any, ctx: Any) -> None:
        try:
            await ctx.fetch("https://a/1")
        except Exception:
            ctx.save("page", key="a", data={"text": "none"})

    outcome, services = run(act, refusal=Unchanged("the site says so", seen))
    assert isinstance(outcome, Skipped)
    assert (outcome.reason, outcome.why) == ("unchanged: the site says so", "unchanged")
    assert services.flushed == []
    left = outcome.effects or Effects()
    assert left.extracted == ([] if seen is None else [seen])
    assert left.saves == []


def is_unchanged(visits: Visits) -> bool:
    return visits.unchanged is not None


def test_new_page_beside_an_unchanged_one_is_done_with() -> None:
    visits = Visits()
    visits.left_alone(Unchanged("so", LOOKED_AT))
    assert is_unchanged(visits)
    visits.saw("https://a/2", page("https://a/2"), "v", {})
    assert not is_unchanged(visits)
    assert [each.url for each in visits.done()] == ["https://a/2", "https://a/1"]


def test_pages_that_are_all_as_they_were_are_unchanged_together() -> None:
    visits = Visits()
    visits.saw("https://a/1", page("https://a/1", is_done=True), "v", {})
    assert is_unchanged(visits)
    visits.saw("https://a/2", page("https://a/2", is_done=True), "v", {})
    assert is_unchanged(visits)
    visits.saw("https://a/api", page("https://a/api"), "v", {"method": "POST"})
    assert not is_unchanged(visits)
    assert [each.parts for each in visits.done()] == [3, 3]


def test_what_brings_something_else_than_the_page_is_told_by_its_options() -> None:
    assert is_page({})
    assert is_page({"conditional": True})
    for name in ("method", "headers", "body", "etag", "last_modified"):
        assert not is_page({name: "x"})


@pytest.mark.parametrize("seen", [None, LOOKED_AT])
def test_unchanged_reaches_a_child_process_as_it_was(seen: Extracted | None) -> None:
    error = error_from(refusal_of(1, Unchanged("the site says so", seen)))
    assert isinstance(error, Unchanged)
    assert (error.why, error.reason, error.page) == (
        "the site says so",
        "unchanged: the site says so",
        seen,
    )
