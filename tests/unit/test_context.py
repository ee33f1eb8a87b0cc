"""What a step says through its context is checked, buffered, and written with the attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.engine.worker.threads import Threads
from penstock.jobs.effects import Mark, Note, Raised, Save
from penstock.jobs.outcome import AttemptLost, Failed, Outcome, Succeeded
from penstock.pipeline.pipeline import Pipeline
from tests.unit.performing import Bench, ListedServices, attempt, begun


def page_step(function: Callable[..., Any]) -> Pipeline:
    pipeline = begun()
    function.__name__ = "act"
    pipeline.step(after="begin", unit="page")(function)
    return pipeline


def acting(function: Callable[..., Any], services: ListedServices | None = None) -> Outcome:
    """What a page step with this body comes to."""
    return attempt(page_step(function), "act", {"n": 1}, services)


async def in_thread(
    function: Callable[..., Any], services: ListedServices | None = None
) -> Outcome:
    """As `acting`, in a real thread, so the loop must be a real one too."""
    threads = Threads()
    try:
        return await Bench(page_step(function), services, threads).start("act", {"n": 1})
    finally:
        threads.close()


@dataclass
class Product:
    sku: str
    price: float


def test_everything_a_step_says_becomes_part_of_its_attempt() -> None:
    def act(ctx: Any) -> None:
        ctx.save("product", key="a", data={"b": 1, "a": 2}, score=1, merge="keep")
        ctx.save("product", key=7, data=Product("x", 2.5))
        ctx.checkpoint({"page": 3}, partition="eur")
        ctx.signal("gap", since=5)
        ctx.note("odd \ud800 page")

    outcome = acting(act)

    assert isinstance(outcome, Succeeded)
    effects = outcome.effects
    assert effects.saves == [
        Save("product", "a", b'{"a":2,"b":1}', 1.0, "keep"),
        Save("product", "7", b'{"price":2.5,"sku":"x"}', None, "replace"),
    ]
    assert effects.marks == [Mark("eur", b'{"page":3}')]
    assert effects.signals == [Raised("gap", b'{"since":5}')]
    assert effects.notes == [Note("odd \\ud800 page")]


def test_a_step_knows_its_source_run_and_job() -> None:
    seen: list[Any] = []

    def act(ctx: Any) -> None:
        seen.extend([ctx.source.key, ctx.params["depth"], ctx.run.id, ctx.key, ctx.attempt])
        seen.append(ctx.now() > 0)

    acting(act)
    assert seen == ["acme.com", 2, 7, "key-1", 1, True]


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda ctx: ctx.save("", key="a", data={}), "needs the name of a collection, not ''"),
        (
            lambda ctx: ctx.save("p", key="", data={}),
            "needs a key that is text or a number, not ''",
        ),
        (lambda ctx: ctx.save("p", key=None, data={}), "a key that is text or a number, not None"),
        (lambda ctx: ctx.save("p", key=True, data={}), "a key that is text or a number, not True"),
        (
            lambda ctx: ctx.save("p", key="\ud800", data={}),
            "the key for 'p' got something that is not",
        ),
        (lambda ctx: ctx.save("p", key="a", data=[1]), "needs data with named fields, not list"),
        (
            lambda ctx: ctx.save("p", key="a", data={"x": object()}),
            "got something that is not JSON",
        ),
        (
            lambda ctx: ctx.save("p", key="a", data={}, score="high"),
            "a score that is a number, not 'high'",
        ),
        (lambda ctx: ctx.save("p", key="a", data={}, score=float("nan")), "a number, not nan"),
        (
            lambda ctx: ctx.save("p", key="a", data={}, merge="mrge"),
            "no merge 'mrge'; did you mean 'merge'?",
        ),
        (lambda ctx: ctx.checkpoint(object()), "ctx.checkpoint got something that is not JSON"),
        (lambda ctx: ctx.checkpoint(1, partition=""), "the name of a partition, not ''"),
        (lambda ctx: ctx.signal(""), "ctx.signal needs a name, not ''"),
        (
            lambda ctx: ctx.save("p", key="a", data={"of": [{"price": float("nan")}], "b": None}),
            "ctx.save('p') got a number that JSON does not have: of[0].price is nan",
        ),
        (
            lambda ctx: ctx.save("p", key="a", data=Product("x", float("inf"))),
            "price is inf",
        ),
        (lambda ctx: ctx.checkpoint(float("-inf")), "the value is -inf"),
        (lambda ctx: ctx.signal("gap", size=float("inf")), "size is inf"),
        (lambda ctx: ctx.spend(money=1e308), "ctx.spend needs money from 0 to 1e+12, not 1e+308"),
        (lambda ctx: ctx.spend(requests=10**400), "ctx.spend needs requests from 0 to 1e+12"),
        (lambda ctx: ctx.save("p", key="a", data={}, score=1e308), "a number, not 1e+308"),
    ],
)
def test_what_can_not_be_kept_is_refused_in_words(
    call: Callable[[Any], None], complaint: str
) -> None:
    outcome = acting(call)
    assert isinstance(outcome, Failed)
    assert (outcome.is_permanent, outcome.kind) == (True, "data")
    assert outcome.error.startswith("step 'act': ")
    assert complaint in outcome.error


@pytest.mark.parametrize("verb", ["fetch", "sitemap", "feed"])
def test_a_plain_step_that_fetches_is_told_to_be_async(verb: str) -> None:
    outcome = acting(lambda ctx: getattr(ctx, verb)("https://acme.com/"))
    told = f"step 'act' is a plain function: ctx.{verb} needs 'async def'"
    assert outcome == Failed(told, is_permanent=True, kind="permanent", cause=told)


def test_a_record_names_the_snapshot_it_was_read_from() -> None:
    async def act(ctx: Any) -> None:
        await ctx.fetch("https://acme.com/1")
        response = await ctx.fetch("https://acme.com/2")
        ctx.save("page", key="a", data={"text": response.text})

    outcome = acting(act)
    assert isinstance(outcome, Succeeded)
    assert outcome.effects.saves == [Save("page", "a", b'{"text":"page"}', None, "replace", 2)]


SITEMAP = b"""<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://acme.com/1</loc></url><url><loc>https://acme.com/2</loc></url></urlset>"""
FEED = b"""<rss version="2.0"><channel><title>News</title><link>https://acme.com/</link>
<item><title>One</title><link>https://acme.com/one</link><guid>1</guid></item></channel></rss>"""


def test_sitemaps_and_feeds_are_read_through_fetch() -> None:
    services = ListedServices(
        pages={"https://acme.com/map.xml": SITEMAP, "https://acme.com/feed": FEED}
    )

    async def act(ctx: Any) -> None:
        urls = [url async for url in ctx.sitemap("https://acme.com/map.xml")]
        links = [entry["url"] async for entry in ctx.feed("https://acme.com/feed")]
        ctx.note(" ".join([*urls, *links]))

    outcome = acting(act, services)
    assert isinstance(outcome, Succeeded), outcome
    [note] = outcome.effects.notes
    assert note.text == "https://acme.com/1 https://acme.com/2 https://acme.com/one"


async def commits(ctx: Any) -> None:
    ctx.note("first")
    await ctx.commit()
    ctx.note("second")


def commits_plainly(ctx: Any) -> None:
    ctx.note("first")
    ctx.commit()
    ctx.note("second")


@pytest.mark.parametrize("function", [commits, commits_plainly])
def test_commit_makes_what_is_buffered_so_far_durable(function: Callable[..., Any]) -> None:
    services = ListedServices()
    outcome = asyncio.run(in_thread(function, services))
    assert [effects.notes for effects in services.flushed] == [[Note("first")]]
    assert isinstance(outcome, Succeeded)
    assert outcome.effects.notes == [Note("second")]


def test_a_commit_that_failed_fails_the_attempt_even_if_the_step_goes_on() -> None:
    services = ListedServices(trouble=OSError("disk full"))

    async def act(ctx: Any) -> None:
        ctx.note("first")
        with suppress(OSError):
            await ctx.commit()

    outcome = acting(act, services)
    assert isinstance(outcome, Failed)
    assert outcome.error == "OSError: disk full"


def test_a_plain_step_on_the_loop_can_not_wait() -> None:
    outcome = acting(commits_plainly)
    assert isinstance(outcome, Failed)
    assert "can't wait for ctx.commit: make the step async" in outcome.error


async def reads(ctx: Any) -> None:
    ctx.note(f"{await ctx.cursor('eur')} {await ctx.cursor()}")
    keys = [record["key"] async for record in ctx.records("product")]
    ctx.note(f"{len(keys)} {keys == sorted(keys)}")


def reads_plainly(ctx: Any) -> None:
    ctx.note(f"{ctx.cursor('eur')} {ctx.cursor()}")
    keys = [record["key"] for record in ctx.records("product")]
    ctx.note(f"{len(keys)} {keys == sorted(keys)}")


@pytest.mark.parametrize("function", [reads, reads_plainly])
def test_cursors_and_records_are_read_by_steps_of_either_colour(
    function: Callable[..., Any],
) -> None:
    services = ListedServices(
        collection=[{"key": f"{n:04}"} for n in range(1203)], checkpoints={"eur": 5}
    )
    outcome = asyncio.run(in_thread(function, services))
    assert isinstance(outcome, Succeeded), outcome
    assert outcome.effects.notes == [Note("5 None"), Note("1203 True")]


def test_a_context_that_outlives_its_attempt_is_void() -> None:
    kept: list[Any] = []

    def act(ctx: Any) -> None:
        kept.append(ctx)

    outcome = acting(act)
    ctx = kept[0]
    with pytest.raises(AttemptLost):
        ctx.save("p", key="a", data={})
    with pytest.raises(AttemptLost):
        ctx.checkpoint(1)
    with pytest.raises(AttemptLost):
        ctx.signal("late")
    with pytest.raises(AttemptLost):
        ctx.note("late")
    assert isinstance(outcome, Succeeded)
    assert not outcome.effects


def test_an_item_with_a_number_that_json_does_not_have_is_refused_by_name() -> None:
    pipeline = page_step(lambda: {"price": float("nan")})

    @pipeline.step(after="act", unit="candidate")
    def keep(item: Any) -> None:
        return None

    outcome = attempt(pipeline, "act", {"n": 1})
    assert isinstance(outcome, Failed)
    assert (
        "step 'act' gave an item with a number that JSON does not have: price is nan"
        in outcome.error
    )


def test_more_than_a_transaction_can_hold_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.pipeline.attempt.MOST_EFFECTS", 10)

    def too_many(ctx: Any) -> None:
        for number in range(11):
            ctx.save("p", key=number, data={})

    outcome = acting(too_many)
    assert isinstance(outcome, Failed)
    assert (outcome.is_permanent, outcome.kind) == (True, "data")
    assert "call ctx.commit() now and then" in outcome.error

    async def in_pieces(ctx: Any) -> None:
        for number in range(30):
            ctx.save("p", key=number, data={})
            if number % 10 == 9:
                await ctx.commit()

    services = ListedServices()
    assert isinstance(acting(in_pieces, services), Succeeded)
    assert [len(effects.saves) for effects in services.flushed] == [10, 10, 10]


def test_items_of_a_page_are_counted_with_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.pipeline.attempt.MOST_EFFECT_BYTES", 100)

    def long(ctx: Any) -> Any:
        yield {"text": "x" * 60}
        yield {"text": "y" * 60}

    pipeline = page_step(long)

    @pipeline.step(after="act", unit="candidate")
    def keep(item: Any) -> None:
        return None

    outcome = attempt(pipeline, "act", {"n": 1})
    assert isinstance(outcome, Failed)
    assert "call ctx.commit() now and then" in outcome.error
