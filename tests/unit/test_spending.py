"""What attempts use and what stops them: settings, terms, accounts of attempts, and how runs end."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.worker.budget_use import Spending
from penstock.errors import ConfigError
from penstock.gates.project_terms import NO_RULES, HostLimit, ProjectTerms, rules_of
from penstock.gates.rates import Sent
from penstock.http.failures import BudgetSpent, HostClosed
from penstock.jobs.effects import Effects, Note
from penstock.jobs.failures import Permanent
from penstock.jobs.job import Claimed, JobState, Unit
from penstock.jobs.outcome import AttemptLost, Failed, Outcome, Reject, Skip, Snooze, Succeeded
from penstock.jobs.retry import RETRY_CLASSES, settle
from penstock.jobs.run import Advance, RunState, StageCount, advance
from penstock.pipeline.error_outcome import outcome_of
from penstock.pipeline.graph import Stage, stage_of_our_own
from penstock.pipeline.outflow import CHUNK_S
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.spenders import measures_spent
from penstock.settings import BudgetLimit, HostLimits, load_settings
from penstock.settings.budget import Bound
from penstock.store.rows import BudgetRow
from tests.unit.performing import Bench, ListedServices, virtually
from tests.unit.test_context import acting, page_step
from tests.unit.test_run_advance import NONE, ONE, PACKAGED, SITE

JOB = Claimed(1, 7, 3, "extract", "key", 1, 2, 0, 0, False, "null")


def rules(tmp_path: Path, **config: Any) -> ProjectTerms:
    return rules_of(settings(tmp_path, **config))


def settings(tmp_path: Path, **config: Any) -> Any:
    source = {"pipeline": "a:b", **config.pop("source", {})}
    sources = {"shop": source, "other": {"pipeline": "a:b"}}
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": sources, **config}))
    return load_settings(tmp_path, environ={})


# Configuration.


def test_budgets_are_read_by_measure_and_period(tmp_path: Path) -> None:
    budget = {
        "requests": ["500/run", "5000 / d"],
        "bytes": "1.5GB/day",
        "seconds": "2h/run",
        "money": "5.00/month",
        "timezone": "Europe/Paris",
    }
    found = settings(tmp_path, source={"budget": budget, "cost": {"request": 0.002}}).sources[
        "shop"
    ]
    assert found.budget.timezone == "Europe/Paris"
    assert found.cost.request == 0.002
    assert set(found.budget.bounds) == {
        BudgetLimit("requests", 500, "run"),
        BudgetLimit("requests", 5000, "day"),
        BudgetLimit("bytes", 1.5e9, "day"),
        BudgetLimit("seconds", 7200, "run"),
        BudgetLimit("money", 5, "month"),
    }


def test_hosts_are_named_as_requests_name_them(tmp_path: Path) -> None:
    names = {"API.Example.com.": 1, "127.0.0.1:8000": 2, "bücher.de:443": 3, "[::1]:8080": 4}
    hosts = {name: {"concurrency": number} for name, number in names.items()}
    assert settings(tmp_path, hosts=hosts).hosts == {
        "api.example.com": HostLimits(1),
        "127.0.0.1:8000": HostLimits(2),
        "xn--bcher-kva.de": HostLimits(3),
        "[::1]:8080": HostLimits(4),
    }
    with pytest.raises(ConfigError, match="is the same host as another one above"):
        settings(tmp_path, hosts={"a.b": {"rate": "1/s"}, "A.b:80": {"rate": "1/s"}})


def test_a_request_counts_against_its_run_its_source_and_the_project(tmp_path: Path) -> None:
    found = rules(
        tmp_path,
        budget={"requests": ["50/run", "100/d"], "timezone": "Asia/Tokyo"},
        cost={"request": 0.5},
        hosts={"api.b": {"rate": "2/s"}},
        source={"budget": {"requests": ["20/run", "60/month"]}, "cost": {"request": 0}},
    )
    terms = found.terms("shop", "api.b", 7)
    assert terms.bounds == (
        Bound("project", "requests", "day", 100, "Asia/Tokyo"),
        Bound("source:shop", "requests", "month", 60, "Asia/Tokyo"),
        Bound("run:7", "requests", "run", 20, "Asia/Tokyo"),
    )
    assert (terms.cost, terms.host) == (0, HostLimit("api.b", None, 2.0))
    assert [bound.key for bound in found.terms("other", "x", 9).bounds] == [
        ("project", "requests", "day"),
        ("run:9", "requests", "run"),
    ]
    assert found.cost("other") == 0.5
    assert [bound.scope for bound in found.terms("a.host", "a.host").bounds] == ["project"]
    assert {bound.scope for bound in found.lasting()} == {"project", "source:shop"}


def test_nothing_configured_is_nothing_asked(tmp_path: Path) -> None:
    found = rules(tmp_path)
    assert not found.terms("shop", "a.b", 7)
    assert not found.has_budgets
    assert not NO_RULES.has_budgets
    assert rules(tmp_path, source={"budget": {"seconds": "1h/run"}}).has_budgets


# The accounts of attempts.


def test_requests_are_counted_by_attempt_and_put_down_once(tmp_path: Path) -> None:
    spending = Spending(rules(tmp_path, cost={"request": 0.01}))
    count = spending.counter(JOB, "shop")
    count(Sent(True, 100, 0.5))
    count(Sent(False, 0, 0.25))
    effects = Effects()
    spending.load(JOB, "shop", effects)
    assert effects.spent == {"requests": 2, "bytes": 100, "seconds": 0.75, "money": 0.02}
    assert effects.charges == []
    assert spending.settled(effects) == (JOB.run_id, 2)
    spending.load(JOB, "shop", again := Effects())
    assert not again
    assert spending.settled(again) == (0, 0.0)
    count(Sent(True, 7, 0.0))
    spending.load(JOB, "shop", again)
    assert again.spent == {"requests": 1, "bytes": 7, "money": 0.01}


def test_only_what_steps_spend_is_charged_with_the_commit(tmp_path: Path) -> None:
    spending = Spending(rules(tmp_path, source={"budget": {"money": ["1/d", "2/run"]}}))
    spending.counter(JOB, "shop")(Sent(True, 1, 1.0))
    effects = Effects(spent={"money": 0.5, "requests": 1})
    spending.load(JOB, "shop", effects)
    assert [(bound.scope, amount) for bound, amount in effects.charges] == [
        ("source:shop", 0.5),
        ("run:7", 0.5),
    ]
    assert effects.spent == {"money": 0.5, "requests": 2, "bytes": 1, "seconds": 1.0}


def a_stage(unit: Unit, **about: Any) -> Stage:
    async def invoke(item: Any, ctx: Any) -> None:
        return None

    return replace(stage_of_our_own("any", invoke), unit=unit, **about)


def test_jobs_that_need_what_is_used_up_do_not_begin(tmp_path: Path) -> None:
    spending = Spending(rules(tmp_path, source={"budget": {"requests": "5/d"}}))
    row = BudgetRow("source:shop", "requests", "day", 0.0, 1.0, 5.0, 5.0, 100)
    told = "the budget of 5 requests a day of shop is exhausted"
    assert spending.stops(JOB, "shop", a_stage("page"), "full") == ""
    spending.learn([row])
    assert spending.stops(JOB, "shop", a_stage("page"), "full") == told
    assert spending.stops(JOB, "shop", a_stage("run"), "backfill") == told
    # These need no request, or are not concerned.
    assert spending.stops(JOB, "shop", a_stage("candidate"), "full") == ""
    assert spending.stops(JOB, "shop", a_stage("page"), "replay") == ""
    assert spending.stops(JOB, "shop", a_stage("run", is_gather=True), "full") == ""
    assert spending.stops(JOB, "other", a_stage("page"), "full") == ""


def test_candidates_that_spend_what_is_used_up_do_not_begin(tmp_path: Path) -> None:
    spending = Spending(rules(tmp_path, source={"budget": {"money": "5/d"}}))
    spending.learn([BudgetRow("source:shop", "money", "day", 0.0, 1.0, 5.0, 5.0, 100)])
    told = "the budget of 5.00 of money a day of shop is exhausted"
    spender = a_stage("candidate", spends=frozenset({"money"}))
    other = a_stage("candidate", spends=frozenset({"seconds"}))
    assert spending.stops(JOB, "shop", spender, "full") == told
    assert spending.stops(JOB, "shop", other, "full") == ""
    # Its code did not tell, but it was seen to.
    spending.load(JOB, "shop", Effects(spent={"money": 0.5}))
    assert spending.stops(JOB, "shop", other, "full") == told


def test_what_a_step_spends_is_known_by_its_code() -> None:
    def paid(item: Any, ctx: Any) -> None:
        for _ in range(2):
            ctx.spend(money=0.1, reason="a model was asked")

    async def inner(ctx: Any) -> Any:
        yield [ctx.spend(seconds=each) for each in range(3)]

    def anything(ctx: Any, **amounts: Any) -> None:
        ctx.spend(**amounts)

    assert measures_spent(paid) == {"money"}
    assert measures_spent(inner) == {"seconds"}
    assert measures_spent(anything) == {"money", "requests", "bytes", "seconds"}
    assert measures_spent(a_stage) == frozenset()


def test_steps_say_what_they_spend() -> None:
    def act(ctx: Any) -> None:
        ctx.spend(money=0.25, reason="a model")
        ctx.spend(money=0.5, requests=2)

    outcome = acting(act)
    assert isinstance(outcome, Succeeded)
    assert outcome.effects.spent == {"money": 0.75, "requests": 2}
    assert outcome.effects.notes == [Note("spent 0.25 money: a model")]


def spends_and_raises(error: BaseException) -> Callable[..., Any]:
    def act(ctx: Any) -> None:
        ctx.spend(money=0.5)
        raise error

    return act


@pytest.mark.parametrize(
    "error",
    [
        ValueError("broken"),
        Permanent("gone"),
        HostClosed("acme.com", 5.0, "https://acme.com/", 429),
        Reject("unwanted"),
        AttemptLost("released by a drain"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_an_attempt_has_spent_is_charged_however_it_ends(error: Exception) -> None:
    outcome = acting(spends_and_raises(error))
    end = settle(JOB, outcome, RETRY_CLASSES["fast"], random.Random(1))
    assert end.effects.spent == {"money": 0.5}


@pytest.mark.parametrize("error", [Skip("nothing"), Snooze(60.0)], ids=["Skip", "Snooze"])
def test_what_is_flushed_before_a_good_end_is_charged_once(error: Exception) -> None:
    services = ListedServices()
    outcome = acting(spends_and_raises(error), services)
    end = settle(JOB, outcome, RETRY_CLASSES["fast"], random.Random(1))
    assert [each.spent for each in services.flushed] == [{"money": 0.5}]
    assert end.effects.spent == {}


def test_what_was_spent_before_the_time_was_up_is_charged() -> None:
    async def act(item: Any, ctx: Any) -> None:
        ctx.spend(money=0.5)
        await ctx.commit()
        ctx.spend(money=0.25)
        await asyncio.Event().wait()

    services = ListedServices()
    pipeline = page_step(act)
    outcome = virtually(started(Bench(pipeline, services), "act"))
    assert isinstance(outcome, Failed)
    assert outcome.is_timeout
    assert outcome.spent == {"money": 0.25}
    assert [each.spent for each in services.flushed] == [{"money": 0.5}]


def test_what_a_run_level_step_spends_before_it_fails_is_charged_once() -> None:
    """Whether it was written on the way, waits to be, or belongs to an item that is not complete."""
    pipeline = Pipeline("spending")

    @pipeline.step(unit="run")
    async def find(ctx: Any) -> Any:
        for number in range(3):
            ctx.spend(money=1.0)
            yield {"n": number}
            if number == 1:
                await asyncio.sleep(CHUNK_S * 2)
        ctx.spend(money=1.0)
        raise ValueError("broken")

    @pipeline.step(after="find", unit="page", key="n")
    def take(item: Any) -> None: ...

    services = ListedServices()
    outcome = virtually(started(Bench(pipeline, services), "find"))
    assert isinstance(outcome, Failed)
    flushed = [each.spent["money"] for each in services.flushed if each.spent]
    assert flushed
    assert outcome.spent["money"] + sum(flushed) == 4.0


async def started(bench: Bench, stage: str) -> Outcome:
    return await bench.start(stage, {"n": 1}, timeout_s=30.0)


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), "1", True, None])
def test_what_nobody_can_spend_is_refused(amount: Any) -> None:
    outcome = acting(lambda ctx: ctx.spend(money=amount))
    assert isinstance(outcome, Failed)
    assert "ctx.spend needs money from 0 to" in outcome.error


# How jobs and runs end that a budget stopped.


def test_job_that_a_budget_stopped_is_set_aside_and_keeps_its_tries() -> None:
    outcome = outcome_of(BudgetSpent("the budget is exhausted", "https://acme.com/?token=abc"))
    assert outcome == Failed("the budget is exhausted", is_permanent=True, kind="budget")
    end = settle(JOB, outcome, RETRY_CLASSES["fast"], None)  # type: ignore[arg-type]
    assert (end.state, end.spends_try, end.reason) == (JobState.QUARANTINED, False, "budget")
    assert end.cause == "", "nothing that others could share, and be escalated for"


STOPPED = StageCount(succeeded=3, quarantined=2)
BUDGET = Advance(ends_as=RunState.PARTIAL, reason="budget")


@pytest.mark.parametrize(
    ("counts", "stopped", "ends"),
    [
        ((ONE, STOPPED, ONE), {"extract": 2}, BUDGET),
        ((ONE, STOPPED, ONE), {"extract": 1}, BUDGET),
        ((ONE, STOPPED, ONE), {}, Advance(ends_as=RunState.PARTIAL)),
        # All of it: nothing failed, nothing was tried.
        ((ONE, StageCount(quarantined=2), NONE), {"extract": 2}, BUDGET),
        ((ONE, StageCount(quarantined=2), NONE), {}, Advance(ends_as=RunState.FAILED)),
        # Everything that was tried failed.
        ((ONE, StageCount(quarantined=2), NONE), {"extract": 1}, Advance(ends_as=RunState.FAILED)),
        # Discover itself, with and without pages that it found before.
        ((StageCount(quarantined=1), NONE, NONE), {"discover": 1}, BUDGET),
        ((StageCount(quarantined=1), ONE, ONE), {"discover": 1}, BUDGET),
        ((StageCount(quarantined=1), ONE, ONE), {}, Advance(ends_as=RunState.FAILED)),
        ((StageCount(quarantined=1), StageCount(queued=1), ONE), {"discover": 1}, Advance()),
    ],
)
def test_end_of_a_run_that_a_budget_stopped(
    counts: tuple[StageCount, ...], stopped: dict[str, int], ends: Advance
) -> None:
    names = ("discover", "extract", "persist")
    assert advance(SITE, dict(zip(names, counts, strict=True)), stopped) == ends


def test_what_gathers_waits_for_what_was_stopped() -> None:
    """A report of the half of it would be the only one: it is made once."""
    counts = {"discover": ONE, "prices": ONE, "extract": STOPPED}
    assert advance(PACKAGED, counts, {"extract": 2}) == BUDGET
    assert advance(PACKAGED, counts, {}) == Advance(start=("report",))
    done = counts | {"extract": StageCount(succeeded=5)}
    assert advance(PACKAGED, done) == Advance(start=("report",))
    # A report that was stopped itself is not started twice.
    counts = done | {"report": StageCount(quarantined=1)}
    assert advance(PACKAGED, counts, {"report": 1}) == BUDGET
