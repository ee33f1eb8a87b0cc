"""Every attempt ends in exactly one outcome, whatever its steps do."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import threading
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import msgspec
import pytest

from penstock.engine.worker.child_protocol import End, outcome_from
from penstock.engine.worker.on_loop import CANCEL_GRACE_S
from penstock.engine.worker.threads import InlineThreads, Threads
from penstock.http.failures import Disallowed, FetchError, HostBroken, HostClosed, Paced
from penstock.jobs.effects import Effects, Note, Rejection
from penstock.jobs.failures import AuthFailed, BadData, Permanent, Transient
from penstock.jobs.job import NewJob, canonical_key
from penstock.jobs.outcome import (
    AttemptLost,
    Cancelled,
    Failed,
    Outcome,
    Reject,
    Skip,
    Skipped,
    Snooze,
    Snoozed,
    Succeeded,
    Throttled,
)
from penstock.pipeline.outflow import CHUNK_ITEMS, MOST_BYTES, MOST_ITEMS
from penstock.pipeline.pipeline import Pipeline
from tests.unit.performing import Bench, ListedServices, attempt, begun, until, virtually


def raising(error: BaseException, unit: str = "page") -> Pipeline:
    pipeline = begun()

    @pipeline.step(after="begin", unit=unit)
    async def act(item: Any, ctx: Any) -> None:
        raise error

    return pipeline


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Skip("sold out"), Skipped("sold out")),
        (Reject("no price"), Skipped("no price", is_rejection=True, code="rejected")),
        (Snooze(60, "later"), Snoozed(60, "later")),
        (Disallowed("robots.txt disallows it", "https://a.com/x"),
         Skipped("robots.txt disallows it: https://a.com/x", why="disallowed")),
        (HostClosed("a.com:443", 30.0, "", 429), Throttled("a.com:443", 30.0)),
        (HostClosed("a.com:443", 30.0), Throttled("a.com:443", 30.0, is_answer=False)),
        (HostBroken("a.com:443", 30.0),
         Throttled("a.com:443", 30.0, is_answer=False, gate="breaker")),
        (Paced("a.com:443", 5.0),
         Snoozed(5.0, "the rate allows no request to a.com:443 for 5 s",
                 is_cut=True)),
        (AttemptLost("taken"), Cancelled("taken")),
        (ExceptionGroup("two", [ValueError("x"), HostClosed("a.com:443", 9.0, "", 503)]),
         Throttled("a.com:443", 9.0)),
    ],
)  # fmt: skip
def test_what_a_step_raises_says_what_becomes_of_its_job(
    error: Exception, outcome: Outcome
) -> None:
    assert attempt(raising(error), "act", {}) == outcome


def expired(told: str) -> Failed:
    return Failed(told, kind="transient", cause="timeout", is_timeout=True)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "told", "is_permanent", "kind"),
    [
        (ValueError("bad price"), "ValueError: bad price", True, "data"),
        (ValueError(), "ValueError", True, "data"),
        (RuntimeError("what now"), "RuntimeError: what now", False, "unknown"),
        (
            FetchError("404", "https://a.com/", 404, True),
            "FetchError: 404: https://a.com/",
            True,
            "permanent",
        ),
        (
            FetchError("503", "https://a.com/"),
            "FetchError: 503: https://a.com/",
            False,
            "transient",
        ),
        (KeyboardInterrupt(), "KeyboardInterrupt", False, "unknown"),
        (SystemExit(3), "SystemExit: 3", False, "unknown"),
        (asyncio.CancelledError(), "CancelledError", False, "unknown"),
        (StopIteration(), "RuntimeError: coroutine raised StopIteration", False, "unknown"),
        (ValueError("\ud800"), "ValueError: \\ud800", True, "data"),
        (Unspeakable(), "Unspeakable: (its message can't be shown)", False, "unknown"),
        (ExceptionGroup("g", [KeyError("x")]), "KeyError: 'x'", True, "data"),
    ],
)
@pytest.mark.parametrize("colour", ["async", "plain"])
def test_any_other_exception_is_a_failure_of_that_job_alone(
    error: BaseException, told: str, is_permanent: bool, kind: str, colour: str
) -> None:
    pipeline = raising(error)
    if colour == "plain":
        pipeline = begun()

        @pipeline.step(after="begin", unit="page")
        def act(item: Any) -> None:
            raise error

    outcome = attempt(pipeline, "act", {})
    assert isinstance(outcome, Failed)
    if isinstance(error, StopIteration) and colour == "plain":
        told = "StopIteration"
    assert (outcome.error, outcome.is_permanent, outcome.kind) == (told, is_permanent, kind)


def test_a_traceback_shows_the_users_lines_and_no_others() -> None:
    outcome = attempt(raising(ValueError("secret")), "act", {})
    assert isinstance(outcome, Failed)
    assert "raise error" in outcome.traceback
    assert "penstock" not in outcome.traceback.replace(__file__, "")


@pytest.mark.parametrize("item", [b"", b'{"a":', b"{]", b"[" * 100_000])
def test_a_damaged_item_fails_its_job_and_not_the_worker(item: bytes) -> None:
    outcome = attempt(raising(ValueError("never reached")), "act", item)
    assert isinstance(outcome, Failed)
    assert (outcome.is_permanent, outcome.kind) == (True, "data")
    assert outcome.error.startswith("the item of this job is not JSON")


# Items and how they travel.


def spreading(*, is_async: bool) -> Pipeline:
    """A page step that gives two items, to one step in process and one stage after it."""
    pipeline = begun()

    async def split_async(page: Any, ctx: Any) -> Any:
        ctx.note("seen")
        yield {"n": 1}
        yield None
        yield {"n": 2}

    def split(page: Any, ctx: Any) -> Any:
        ctx.note("seen")
        yield {"n": 1}
        yield None
        yield {"n": 2}

    split_async.__name__ = "split"
    pipeline.step(after="begin", unit="page")(split_async if is_async else split)

    @pipeline.step(after="split", unit="page")
    def keep(part: Any, ctx: Any) -> None:
        part["is_changed"] = True
        ctx.save("part", key=part["n"], data=part)

    @pipeline.step(after="split", unit="page")
    async def count(part: Any, ctx: Any) -> None:
        ctx.note(f"counted {sorted(part)}")

    @pipeline.step(after="split", unit="candidate", priority=2)
    def judge(part: Any) -> None: ...

    return pipeline


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("make_threads", [InlineThreads, Threads])
def test_each_output_goes_to_each_fused_step_and_each_stage_after(
    is_async: bool, make_threads: Callable[[], Any]
) -> None:
    threads = make_threads()

    async def perform() -> Outcome:
        return await Bench(spreading(is_async=is_async), threads=threads).start("split", {})

    outcome = asyncio.run(perform())
    threads.close()
    assert isinstance(outcome, Succeeded), outcome
    effects = outcome.effects
    items = [{"n": 1}, {"n": 2}]
    assert effects.children == [
        NewJob("judge", canonical_key(item), msgspec.json.encode(item), 2) for item in items
    ]
    assert [save.key for save in effects.saves] == ["1", "2"]
    # What one successor changes in its item, another does not see.
    assert effects.notes == [Note("seen"), Note("counted ['n']"), Note("counted ['n']")]


def candidate(function: Callable[..., Any]) -> Pipeline:
    pipeline = begun()
    function.__name__ = "judge"
    pipeline.step(after="begin", unit="candidate")(function)

    @pipeline.step(after="judge", unit="candidate")
    def persist(item: Any) -> None: ...

    return pipeline


def test_a_candidate_that_reaches_no_leaf_was_dropped() -> None:
    assert attempt(candidate(lambda item: None), "judge", {}) == Succeeded(Effects(is_dropped=True))
    assert attempt(candidate(lambda item: item), "judge", {}) == Succeeded(Effects())


def test_a_candidate_that_left_something_behind_was_not_dropped() -> None:
    outcome = attempt(candidate(lambda item, ctx: ctx.note("kept")), "judge", {})
    assert isinstance(outcome, Succeeded)
    assert not outcome.effects.is_dropped


def test_rejecting_one_of_many_outputs_keeps_the_others() -> None:
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    def split(page: Any) -> Any:
        yield from page["prices"]

    @pipeline.step(after="split", unit="page")
    def persist(price: Any, ctx: Any) -> None:
        if price < 0:
            raise Reject("no price")
        ctx.save("price", key=price, data={"price": price})

    outcome = attempt(pipeline, "split", {"prices": [1, -1, 2]})
    assert isinstance(outcome, Succeeded)
    assert [save.key for save in outcome.effects.saves] == ["1", "2"]
    assert outcome.effects.rejections == [Rejection("rejected", "no price")]


def test_an_only_output_that_is_rejected_rejects_the_job() -> None:
    pipeline = begun()

    @pipeline.step(after="begin", unit="candidate")
    def normalize(product: Any) -> Any:
        return product

    @pipeline.step(after="normalize", unit="candidate")
    def judge(product: Any) -> Any:
        raise Reject("no price")

    @pipeline.step(after="judge", unit="candidate")
    def persist(product: Any) -> None: ...

    expected = Effects(rejections=[Rejection("rejected", "no price")])
    assert attempt(pipeline, "normalize", {}) == Succeeded(expected)


def test_a_page_that_fails_half_way_leaves_nothing_behind() -> None:
    services = ListedServices()
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    async def extract(page: Any, ctx: Any) -> Any:
        for n in range(2000):
            yield n
        raise ValueError("half way")

    @pipeline.step(after="extract", unit="candidate")
    def judge(n: Any) -> None: ...

    assert isinstance(attempt(pipeline, "extract", {}, services), Failed)
    assert services.flushed == []


@pytest.mark.parametrize("error", [Snooze(60), Skip("enough")])
@pytest.mark.parametrize("is_async", [True, False])
def test_what_was_buffered_before_a_good_end_is_kept(error: Exception, is_async: bool) -> None:
    services = ListedServices()

    def act(item: Any, ctx: Any) -> None:
        ctx.checkpoint(5)
        raise error

    async def act_async(item: Any, ctx: Any) -> None:
        act(item, ctx)

    act_async.__name__ = "act"
    pipeline = begun()
    pipeline.step(after="begin", unit="page")(act_async if is_async else act)
    attempt(pipeline, "act", {}, services)
    assert [mark.cursor for effects in services.flushed for mark in effects.marks] == [b"5"]


def test_a_decorator_that_hides_an_async_function_is_noticed() -> None:
    pipeline = begun()

    async def extract(page: Any) -> None: ...

    @pipeline.step(after="begin", unit="page")
    @functools.wraps(extract)
    def wrapper(page: Any) -> Any:
        return extract(page)

    outcome = attempt(pipeline, "extract", {})
    assert isinstance(outcome, Failed)
    assert "returned something to await: make it async def" in outcome.error


# Run-level stages, which flush on their way.


def extract(n: Any) -> None: ...


def discovering(count: int, *, is_async: bool = True, fails: bool = False) -> Pipeline:
    pipeline = Pipeline("p")

    def discover(ctx: Any) -> Any:
        for n in range(count):
            ctx.checkpoint(n)
            yield n
        if fails:
            raise ValueError("at the end")

    async def discover_async(ctx: Any) -> Any:
        for n in discover(ctx):
            yield n

    discover_async.__name__ = "discover"
    pipeline.step(unit="run")(discover_async if is_async else discover)

    pipeline.step(after="discover", unit="page", key=str)(extract)
    return pipeline


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("make_threads", [InlineThreads, Threads])
def test_what_a_run_step_yields_is_flushed_in_chunks(
    is_async: bool, make_threads: Callable[[], Any]
) -> None:
    services, threads = ListedServices(), make_threads()

    async def perform() -> Outcome:
        pipeline = discovering(1800, is_async=is_async)
        return await Bench(pipeline, services, threads).start("discover")

    outcome = asyncio.run(perform())
    threads.close()
    assert isinstance(outcome, Succeeded)
    assert services.flushed
    assert max(effects.size for effects in services.flushed) <= MOST_ITEMS + 1
    rest = [msgspec.json.decode(job.item) for job in outcome.effects.children]
    assert services.children + rest == list(range(1800))
    # A checkpoint is never durable before what it stands for.
    seen = 0
    for effects in [*services.flushed, outcome.effects]:
        seen += len(effects.children)
        assert all(int(mark.cursor) < seen for mark in effects.marks)


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("item", "most"),
    [("", CHUNK_ITEMS + MOST_ITEMS), ("x" * 9_998, 2 * MOST_BYTES // 10_000)],
    ids=["small", "large"],
)
def test_a_run_step_waits_while_the_store_is_busy(item: str, most: int, is_async: bool) -> None:
    yielded: list[str] = []
    pipeline = Pipeline("p")

    def discover() -> Any:
        for _ in range(5000):
            yielded.append(item)
            yield item

    async def discover_async() -> Any:
        for each in discover():
            yield each

    discover_async.__name__ = "discover"
    pipeline.step(unit="run")(discover_async if is_async else discover)
    pipeline.step(after="discover", unit="page")(extract)

    async def perform() -> tuple[int, Outcome]:
        services = ListedServices(room=asyncio.Semaphore(0))
        threads = Threads()
        ended = Bench(pipeline, services, threads).start("discover")
        # One chunk is with the store, which has no room; the step may fill one more, and a larger one.
        await until(lambda: len(yielded) >= most)
        for _ in range(200):
            await asyncio.sleep(0)
        before = len(yielded)
        assert services.room is not None
        for _ in range(20):
            services.room.release()
        outcome = await ended
        threads.close()
        return before, outcome

    before, outcome = asyncio.run(perform())
    assert before == most
    assert len(yielded) == 5000
    assert isinstance(outcome, Succeeded)


def test_what_is_poured_is_taken_over_whole() -> None:
    names = [each.name for each in fields(Effects)]
    first, second = Effects(), Effects()
    for name in names:
        empty = getattr(second, name)
        full: Any = [name] if empty == [] else {name: 2} if empty == {} else type(empty)(1)
        setattr(second, name, full)
    before = copy.deepcopy(second)

    first.pour(second)
    assert (first, second) == (before, Effects())

    first.pour(copy.deepcopy(before))
    for name in names:
        once, twice = getattr(before, name), getattr(first, name)
        if isinstance(once, dict):
            assert twice == {name: 4}
        else:
            assert twice == (once if isinstance(once, bool) else once + once)


def test_a_slow_run_step_is_flushed_every_quarter_of_a_second() -> None:
    services = ListedServices()
    pipeline = Pipeline("p")
    flushes: list[int] = []

    @pipeline.step(unit="run")
    async def discover(ctx: Any) -> Any:
        for n in range(3):
            yield n
            await asyncio.sleep(0.2)
            flushes.append(len(services.flushed))
            await asyncio.sleep(3600)
            flushes.append(len(services.flushed))

    pipeline.step(after="discover", unit="page")(extract)

    async def perform() -> Outcome:
        return await Bench(pipeline, services).start("discover", timeout_s=1e6)

    outcome = virtually(perform())
    assert flushes == [0, 1, 1, 2, 2, 3]
    assert outcome == Succeeded(Effects())


def test_records_of_a_run_step_wait_for_its_next_item() -> None:
    services = ListedServices()
    pipeline = Pipeline("p")

    @pipeline.step(unit="run")
    async def discover(ctx: Any) -> Any:
        ctx.checkpoint(1)
        await asyncio.sleep(10)
        ctx.save("page", key="a", data={})
        ctx.note(f"{len(services.flushed)} before the yield")
        yield 1
        await asyncio.sleep(10)
        ctx.note(f"{len(services.flushed)} after it")

    pipeline.step(after="discover", unit="page")(extract)
    outcome = attempt(pipeline, "discover", None, services)

    [chunk] = services.flushed
    assert [len(part) for part in (chunk.marks, chunk.saves, chunk.children)] == [1, 1, 1]
    assert chunk.notes == [Note("0 before the yield")]
    assert outcome == Succeeded(Effects(notes=[Note("1 after it")]))


@pytest.mark.parametrize("is_async", [True, False])
def test_a_run_step_that_fails_keeps_what_it_had_flushed(is_async: bool) -> None:
    services = ListedServices()
    outcome = attempt(discovering(700, is_async=is_async, fails=True), "discover", None, services)
    assert isinstance(outcome, Failed)
    assert len(services.children) == 500


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("make_threads", [InlineThreads, Threads])
def test_a_run_step_whose_job_was_taken_away_stops(
    is_async: bool, make_threads: Callable[[], Any]
) -> None:
    services, threads = ListedServices(trouble=AttemptLost("taken")), make_threads()

    async def perform() -> Outcome:
        pipeline = discovering(10**9, is_async=is_async)
        return await Bench(pipeline, services, threads).start("discover")

    assert asyncio.run(perform()) == Cancelled("taken")
    threads.close()


def test_a_run_step_that_waits_learns_that_its_job_was_taken_away() -> None:
    services = ListedServices(trouble=AttemptLost("taken"))
    pipeline = Pipeline("p")

    @pipeline.step(unit="run")
    async def discover() -> Any:
        yield 1
        await asyncio.Event().wait()

    pipeline.step(after="discover", unit="page")(extract)
    assert attempt(pipeline, "discover", None, services) == Cancelled("taken")


# Stopping.


def sleeping(log: list[str], *, ignores: int = 0) -> Pipeline:
    """A page step that sleeps for ever, and ignores so many cancellations."""
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    async def act(item: Any) -> Any:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                log.append("cancelled")
                if len(log) > ignores:
                    raise

    return pipeline


def test_an_async_attempt_that_takes_too_long_is_cancelled() -> None:
    log: list[str] = []

    async def perform() -> Bench:
        bench = Bench(sleeping(log))
        await bench.start("act", {}, timeout_s=30)
        assert asyncio.get_running_loop().time() == pytest.approx(30)
        return bench

    bench = virtually(perform())
    assert bench.outcomes == [(1, expired("timed out after 30 s"))]
    assert log == ["cancelled"]
    assert (bench.performer.running, bench.performer.lost_threads) == (0, 0)


def test_an_attempt_that_ignores_its_cancellation_is_given_up_and_counted() -> None:
    async def perform() -> Bench:
        bench = Bench(sleeping([], ignores=1))
        await bench.start("act", {}, timeout_s=30)
        assert asyncio.get_running_loop().time() == pytest.approx(30 + CANCEL_GRACE_S)
        assert bench.performer.lost_threads == 1

        gc.collect()  # nothing but the performer knows it any more
        [stubborn] = asyncio.all_tasks() - {asyncio.current_task()}
        stubborn.cancel()
        await asyncio.wait([stubborn])
        await asyncio.sleep(0)
        assert bench.performer.lost_threads == 0
        return bench

    bench = virtually(perform())
    assert bench.outcomes == [(1, expired("timed out after 30 s"))]


def test_an_attempt_that_turns_its_cancellation_into_success_has_timed_out_all_the_same() -> None:
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    async def act(item: Any, ctx: Any) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return

    outcome = attempt(pipeline, "act", {})
    assert outcome == expired("timed out after 60 s")


def test_a_cancelled_attempt_says_why() -> None:
    async def perform() -> Bench:
        bench = Bench(sleeping([]))
        first = bench.start("act", {}, job_id=1)
        other = bench.start("act", {}, job_id=2, timeout_s=5)
        await asyncio.sleep(1)
        bench.performer.cancel(1, "released by a drain")
        bench.performer.cancel(1, "again")
        bench.performer.cancel(99, "unknown")
        await asyncio.gather(first, other)
        return bench

    assert virtually(perform()).outcomes == [
        (1, Cancelled("released by a drain")),
        (2, expired("timed out after 5 s")),
    ]


def test_an_attempt_cancelled_before_it_began_ends_too() -> None:
    async def perform() -> Bench:
        bench = Bench(sleeping([]))
        ended = bench.start("act", {})
        bench.performer.cancel(1, "too soon")
        await ended
        return bench

    assert virtually(perform()).outcomes == [(1, Cancelled("too soon"))]


def test_an_attempt_that_ended_is_not_cancelled_afterwards() -> None:
    async def perform() -> Bench:
        bench = Bench(candidate(lambda item: item))
        await bench.start("judge", {})
        bench.performer.cancel(1, "too late")
        return bench

    assert virtually(perform()).outcomes == [(1, Succeeded(Effects()))]


def test_plain_steps_run_on_the_loop_when_they_ask_for_it() -> None:
    pipeline = begun()

    @pipeline.step(after="begin", unit="page", isolation="inline")
    def act(item: Any, ctx: Any) -> None:
        asyncio.get_running_loop()
        ctx.note("on the loop")

    async def perform() -> Outcome:
        threads = Threads()
        ended = Bench(pipeline, threads=threads).start("act", {})
        assert ended.done()
        assert threads.size == 0
        return await ended

    assert asyncio.run(perform()) == Succeeded(Effects(notes=[Note("on the loop")]))


def windows_pipeline(error: BaseException | None) -> Pipeline:
    pipeline = Pipeline("p")

    @pipeline.step(unit="page", windows=True)
    def act(ctx: Any) -> None:
        if error is not None:
            raise error

    return pipeline


@pytest.mark.parametrize("error", [None, Skip("nothing there")], ids=["ended", "skipped"])
def test_job_for_something_that_is_no_window_fails_and_nothing_else_does(
    error: BaseException | None,
) -> None:
    outcome = attempt(windows_pipeline(error), "act", {"from": "soon"})

    assert isinstance(outcome, Failed)
    assert (outcome.is_permanent, outcome.kind) == (True, "data")
    assert "needs 'from' as a time" in outcome.error


# Steps that would never end, or say what nobody can write down.


@pytest.mark.parametrize("ends_by", ["returning", "raising", "skipping"])
def test_an_attempt_that_cancels_itself_has_failed_or_ended_and_is_not_put_back(
    ends_by: str,
) -> None:
    """A task that was cancelled by its own code, or by a helper that never calls `uncancel`."""
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    async def act(item: Any, ctx: Any) -> None:
        ctx.note("was here")
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            assert task.cancelling() > 0
            if ends_by == "raising":
                raise
            if ends_by == "skipping":
                raise Skip("nothing there") from None

    async def perform() -> Outcome:
        return await Bench(pipeline).start("act", {})

    outcome = virtually(perform())
    expected = {"returning": Succeeded, "raising": Failed, "skipping": Skipped}[ends_by]
    assert isinstance(outcome, expected)


def test_a_cancellation_that_strikes_while_the_end_is_written_is_a_failure() -> None:
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    async def act(item: Any, ctx: Any) -> None:
        ctx.note("was here")
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        raise Skip("nothing there")

    async def perform() -> Outcome:
        services = ListedServices(room=asyncio.Semaphore(0))
        return await Bench(pipeline, services).start("act", {})

    assert isinstance(virtually(perform()), Failed)


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


STRANGE = [KeyError("x"), None, 7, b"raw", "\ud800", "a\x00b", ["list"], Unshowable(), object]


@pytest.mark.parametrize("kind", [Skip, Reject, Snooze, Transient, Permanent, AuthFailed, BadData])
@pytest.mark.parametrize("reason", STRANGE, ids=lambda each: type(each).__name__)
def test_any_reason_becomes_text_that_processes_and_databases_take(
    kind: Callable[..., Exception], reason: Any
) -> None:
    def act(item: Any) -> None:
        raise kind(reason) if kind is not Snooze else Snooze(reason, reason)

    outcome = attempt(candidate(act), "judge", {})
    packed = msgspec.msgpack.encode(outcome)
    again = outcome_from(End(type(outcome).__name__, packed))
    assert again == outcome
    said = {
        name: getattr(outcome, name)
        for name in ("reason", "error", "cause")
        if hasattr(outcome, name)
    }
    assert said
    for text in said.values():
        assert type(text) is str
        assert "\x00" not in text


def test_a_reason_that_is_an_error_keeps_its_type() -> None:
    def act(item: Any) -> None:
        raise Skip(KeyError("x"))  # type: ignore[arg-type]

    assert attempt(candidate(act), "judge", {}) == Skipped("KeyError: 'x'")


def test_an_endless_plain_step_stops_at_its_next_yield_once_its_time_is_over() -> None:
    pipeline = begun()
    yields, goes_on, stopped = [0], threading.Event(), threading.Event()

    @pipeline.step(after="begin", unit="page")
    def act(item: Any) -> Any:
        try:
            while True:
                yields[0] += 1
                yield None
                if yields[0] == 100:
                    goes_on.wait()
        finally:
            stopped.set()

    async def perform() -> Outcome:
        threads = Threads()
        outcome = await Bench(pipeline, threads=threads).start("act", {}, timeout_s=0.05)
        goes_on.set()
        await asyncio.get_running_loop().run_in_executor(None, stopped.wait, 10)
        threads.close()
        return outcome

    assert asyncio.run(perform()) == expired("timed out after 0.05 s")
    assert stopped.is_set()
    assert yields == [101]


@pytest.mark.parametrize("what", ["children", "saves"])
def test_what_an_attempt_buffers_for_one_commit_is_bounded(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("penstock.pipeline.attempt.MOST_EFFECTS", 500)
    pipeline, made = begun(), [0]

    @pipeline.step(after="begin", unit="page")
    def act(item: Any, ctx: Any) -> Any:
        while True:
            made[0] += 1
            if what == "saves":
                ctx.save("page", key=made[0], data={"text": "x" * 100})
            yield {"number": made[0]}

    @pipeline.step(after="act", unit="candidate")
    def judge(item: Any) -> None:
        return None

    outcome = attempt(pipeline, "act", {})
    assert isinstance(outcome, Failed)
    assert outcome.is_permanent
    assert "call ctx.commit() now and then" in outcome.error
    assert 100 < made[0] < 600
