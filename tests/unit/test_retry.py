"""Retries: where each outcome leads, capped, spread, and never more often than the class says."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from penstock.jobs.effects import Effects, Note, Rejection
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Cancelled, Failed, Skipped, Snoozed, Succeeded, Throttled
from penstock.jobs.retry import (
    DEFAULT_RETRY,
    MAX_SNOOZE_S,
    MAX_THROTTLES,
    RETRY_CLASSES,
    RetryClass,
    settle,
)

CLASSES = list(RETRY_CLASSES.values())
FAST = RETRY_CLASSES["fast"]


def a_claim(tries: int = 0, throttles: int = 0) -> Claimed:
    return Claimed(7, 1, 1, "extract", "k", 3, tries, throttles, 0, False, "null")


def rng() -> random.Random:
    return random.Random(1)


@pytest.mark.parametrize("retry", CLASSES, ids=lambda retry: retry.name)
def test_job_is_tried_as_often_as_its_class_says(retry: RetryClass) -> None:
    states = [
        settle(a_claim(tries), Failed("x", kind="transient"), retry, rng()).state
        for tries in range(retry.tries)
    ]

    assert states == [JobState.WAITING] * (retry.tries - 1) + [JobState.QUARANTINED]


@pytest.mark.parametrize("retry", CLASSES, ids=lambda retry: retry.name)
@pytest.mark.parametrize("failures", [1, 2, 5, 50, 5000])
def test_wait_is_within_its_ceiling_and_the_ceiling_within_the_cap(
    retry: RetryClass, failures: int
) -> None:
    chance = rng()
    waits = [retry.delay_s(failures, chance) for _ in range(500)]

    assert all(0.0 <= wait <= retry.ceiling_s(failures) <= retry.cap_s for wait in waits)
    assert max(waits) > 0.9 * retry.ceiling_s(failures)
    assert min(waits) < 0.1 * retry.ceiling_s(failures)


@pytest.mark.parametrize("retry", CLASSES, ids=lambda retry: retry.name)
def test_ceiling_doubles_until_the_cap(retry: RetryClass) -> None:
    ceilings = [retry.ceiling_s(failures) for failures in range(1, 20)]

    assert ceilings[0] == retry.base_s
    assert ceilings[1] == 2 * retry.base_s
    assert ceilings == sorted(ceilings)
    assert ceilings[-1] == retry.cap_s


@pytest.mark.parametrize("retry", CLASSES, ids=lambda retry: retry.name)
def test_failures_of_one_instant_come_back_spread_out(retry: RetryClass) -> None:
    """100,000 jobs fail at once: no second of the window gets more than three times the mean."""
    chance, failures = rng(), 3
    window_s = retry.ceiling_s(failures)
    due = [
        settle(a_claim(failures - 1), Failed("x", kind="transient"), retry, chance).delay_s
        for _ in range(100_000)
    ]

    buckets = Counter(int(delay_s) for delay_s in due)

    mean = len(due) / max(1.0, math.ceil(window_s))
    assert max(buckets.values()) <= 3 * mean


def test_throttled_herd_comes_back_spread_out_and_never_early() -> None:
    chance = rng()
    due = [
        settle(a_claim(), Throttled("acme.com", 60.0), FAST, chance).delay_s for _ in range(10_000)
    ]

    assert min(due) >= 60.0
    buckets = Counter(int(delay_s) for delay_s in due)
    assert max(buckets.values()) <= 3 * len(due) / 16


def test_permanent_failure_is_not_tried_again() -> None:
    settled = settle(a_claim(), Failed("404", is_permanent=True, kind="permanent"), FAST, rng())

    assert (settled.state, settled.reason, settled.error) == (
        JobState.QUARANTINED, "permanent", "404",
    )  # fmt: skip


def test_success_carries_its_effects() -> None:
    effects = Effects(notes=[Note("n")])

    settled = settle(a_claim(), Succeeded(effects), FAST, rng())

    assert (settled.job_id, settled.attempt) == (7, 3)
    assert (settled.state, settled.effects) == (JobState.SUCCEEDED, effects)
    assert not settled.spends_try


def test_throttling_spends_no_try_and_closes_the_host() -> None:
    settled = settle(a_claim(tries=3), Throttled("acme.com", 30.0), FAST, rng())

    assert (settled.state, settled.spends_try, settled.is_throttle) == (
        JobState.WAITING,
        False,
        True,
    )
    assert (settled.closes_host, settled.closes_for_s) == ("acme.com", 30.0)


def test_endless_throttling_ends_in_quarantine() -> None:
    before = settle(a_claim(throttles=MAX_THROTTLES - 2), Throttled("a", 1.0), FAST, rng())
    last = settle(a_claim(throttles=MAX_THROTTLES - 1), Throttled("a", 1.0), FAST, rng())

    assert (before.state, last.state) == (JobState.WAITING, JobState.QUARANTINED)


@pytest.mark.parametrize(
    ("asked_s", "given_s"),
    [
        (60, 60.0),
        (0, 0.0),
        (-5, 0.0),
        (math.nan, 0.0),
        (math.inf, MAX_SNOOZE_S),
        (1e300, MAX_SNOOZE_S),
    ],
)
def test_snooze_spends_nothing_and_ends_some_day(asked_s: float, given_s: float) -> None:
    settled = settle(a_claim(tries=99, throttles=99), Snoozed(asked_s, "shut"), FAST, rng())

    assert (settled.state, settled.spends_try, settled.is_throttle) == (
        JobState.WAITING,
        False,
        False,
    )
    assert settled.delay_s == given_s


def test_cancelled_attempt_runs_again_at_once_and_spends_nothing() -> None:
    settled = settle(a_claim(), Cancelled("drained"), FAST, rng())

    assert (settled.state, settled.delay_s, settled.spends_try) == (JobState.QUEUED, 0.0, False)


def test_rejection_is_work_done_and_counted_and_a_skip_is_neither() -> None:
    skipped = settle(a_claim(), Skipped("robots"), FAST, rng())
    rejected = settle(a_claim(), Skipped("too cheap", is_rejection=True), FAST, rng())

    assert (skipped.state, skipped.reason) == (JobState.SKIPPED, "robots")
    assert rejected.state is JobState.SUCCEEDED
    assert rejected.effects.rejections == [Rejection("rejected", "too cheap")]
    assert not skipped.effects


def test_same_seed_gives_the_same_waits() -> None:
    def waits(seed: int) -> list[float]:
        chance = random.Random(seed)
        return [
            settle(a_claim(), Failed("x", kind="transient"), FAST, chance).delay_s
            for _ in range(50)
        ]

    assert waits(1) == waits(1) != waits(2)


def test_classes_are_those_of_the_docs() -> None:
    assert set(RETRY_CLASSES) == {"fast", "conservative", "provider-safe"}
    assert all(name == retry.name for name, retry in RETRY_CLASSES.items())
    assert DEFAULT_RETRY in RETRY_CLASSES
