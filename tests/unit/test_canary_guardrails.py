"""Guardrails of canaries: an exact test, known cases, and how often a canary is stopped."""

from __future__ import annotations

import math
import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.generators import canary as simulated
from penstock.jobs.canary.exact_test import Stratum, chance_of_more
from penstock.jobs.canary.guardrails import (
    GUARDS,
    Limits,
    PageSample,
    alpha_at,
    judge,
    look_due,
)
from penstock.jobs.canary.share import is_in_share, sources_in_share

SMALL = st.builds(
    lambda canary, bad, control, others: Stratum(
        canary, min(bad, canary), control, min(others, control)
    ),
    st.integers(1, 5), st.integers(0, 5), st.integers(1, 5), st.integers(0, 5),
)  # fmt: skip


@given(SMALL)
def test_the_test_counts_every_way_to_share_out_the_bad_pages(stratum: Stratum) -> None:
    total, bad = stratum.canary + stratum.control, stratum.canary_bad + stratum.control_bad
    ways = [
        sum(place < bad for place in chosen)
        for chosen in combinations(range(total), stratum.canary)
    ]
    as_many = sum(number >= stratum.canary_bad for number in ways) / len(ways)
    assert math.isclose(chance_of_more([stratum]), as_many, abs_tol=1e-9)


@given(st.lists(SMALL, min_size=2, max_size=4))
def test_over_strata_every_way_in_each_is_combined_with_every_way_in_the_others(
    strata: list[Stratum],
) -> None:
    sums = {0: 1.0}
    for each in strata:
        bad = each.canary_bad + each.control_bad
        new: dict[int, float] = {}
        for number in range(min(bad, each.canary) + 1):
            ways = math.comb(bad, number) * math.comb(
                each.canary + each.control - bad, each.canary - number
            )
            part = ways / math.comb(each.canary + each.control, each.canary)
            for before, chance in sums.items():
                new[before + number] = new.get(before + number, 0.0) + chance * part
        sums = new
    seen = sum(each.canary_bad for each in strata)
    expected = sum(chance for number, chance in sums.items() if number >= seen)
    assert math.isclose(chance_of_more(strata), expected, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("stratum", "expected"),
    [
        # Fisher's tea: three of four cups right, 17/70.
        (Stratum(4, 3, 4, 1), 17 / 70),
        (Stratum(100, 0, 900, 5), 1.0),
        # One bad page of the canary alone is one in ten: it stops nothing.
        (Stratum(100, 1, 900, 0), 0.1),
    ],
)
def test_known_cases(stratum: Stratum, expected: float) -> None:
    assert math.isclose(chance_of_more([stratum]), expected, rel_tol=1e-9)


def test_pairs_are_mcnemars_test() -> None:
    pairs = [Stratum(1, 1, 1, 0)] * 9 + [Stratum(1, 0, 1, 1)] * 1 + [Stratum(1, 1, 1, 1)] * 50
    expected = (math.comb(10, 9) + 1) / 2**10
    assert math.isclose(chance_of_more(pairs), expected, rel_tol=1e-9)


def test_large_samples_agree_with_the_exact_test() -> None:
    exact = chance_of_more([Stratum(1500, 60, 6000, 180)])
    split = chance_of_more([Stratum(1500, 60, 6000, 180), Stratum(2500, 0, 2500, 2500)])
    assert exact < 0.06
    assert split == 1.0 or math.isclose(exact, split, rel_tol=0.2)


@given(st.integers(1, 40), st.floats(0.001, 0.2))
def test_all_looks_at_all_guardrails_together_spend_no_more_than_alpha(
    looks: int, alpha: float
) -> None:
    spent = sum(alpha_at(alpha, look) * len(GUARDS) for look in range(1, looks + 1))
    assert spent < alpha


def test_looks_are_at_the_least_sample_and_at_every_doubling() -> None:
    at, looks = [], 0
    for pages in range(1, 900):
        if look_due(pages, looks, 50):
            looks += 1
            at.append(pages)
    assert at == [50, 100, 200, 400, 800]


def pages(number: int, *, is_canary: bool, **about: object) -> list[PageSample]:
    found = []
    for each in range(number):
        page = PageSample(1, is_canary, scored=4, scores=3.2)
        page.keys = {f"{'new' if is_canary else 'old'} {each} {part}" for part in range(4)}
        for name, value in about.items():
            setattr(page, name, value(each) if callable(value) else value)
        found.append(page)
    return found


HARMS: dict[str, dict[str, Any]] = {
    "failures": {"has_failed": lambda each: each % 4 == 0},
    "yield": {"keys": lambda each: {f"{each}", f"{each} too"}},
    "rejections": {"rejected": 2},
    "duplicates": {"keys": lambda each: {"none", "of", "these", "differ"}},
    "quality": {"scores": 2.8},
}


@pytest.mark.parametrize("guard", GUARDS)
def test_each_guardrail_sees_its_own_harm_and_no_other(guard: str) -> None:
    control = pages(500, is_canary=False)
    look = judge([*control, *pages(60, is_canary=True, **HARMS[guard])], Limits(), 1)
    assert [each.guard for each in look.crossed] == [guard]
    assert judge([*control, *pages(60, is_canary=True)], Limits(), 1).crossed == ()


@pytest.mark.parametrize("guard", GUARDS)
def test_a_page_that_both_have_performed_is_compared_with_itself(guard: str) -> None:
    """Pages that differ much among themselves: what is worse on each of them is seen all the same."""
    pair: dict[str, Any] = {"pair": str, "name": str}
    harm = {**pair, **HARMS[guard]}
    if guard == "yield":
        harm["keys"] = lambda each: {f"{each} {part}" for part in range(each % 30)}
    if guard == "duplicates":
        harm["keys"] = lambda each: {"none", "of", "these", "differ"}
    keys = {"keys": lambda each: {f"{each} {part}" for part in range(each % 30 + 4)}}
    control = pages(60, is_canary=False, **pair, **keys)
    canary = pages(60, is_canary=True, **{**keys, **harm})
    assert guard in [each.guard for each in judge([*control, *canary], Limits(), 1).crossed]
    same = pages(60, is_canary=True, **pair, **keys)
    assert judge([*control, *same], Limits(), 1).crossed == ()


def test_page_of_several_runs_is_no_duplicate_of_itself() -> None:
    """Else all pages have duplicates from the second run on, and the harm of a release is not seen."""
    control = [page for _ in range(2) for page in pages(500, is_canary=False, name=str)]
    twice = [
        page for _ in range(2) for page in pages(60, is_canary=True, name=lambda n: f"new {n}")
    ]
    harm = pages(60, is_canary=True, name=lambda n: f"new {n}", **HARMS["duplicates"])

    rates = {each.guard: each.canary for each in judge([*control, *twice], Limits(), 1).results}
    assert rates["duplicates"] == 0
    look = judge([*control, *harm, *harm], Limits(), 1)
    assert [each.guard for each in look.crossed] == ["duplicates"]


def test_too_few_pages_are_not_judged() -> None:
    harm = pages(49, is_canary=True, has_failed=True)
    look = judge([*pages(500, is_canary=False), *harm], Limits(), 1)
    assert (look.has_enough, look.crossed) == (False, ())


def test_what_is_within_the_tolerance_stops_nothing_however_sure_it_is() -> None:
    control = pages(4000, is_canary=False)
    canary = pages(4000, is_canary=True, has_failed=lambda each: each % 60 == 0)
    [failures] = [
        each for each in judge([*control, *canary], Limits(), 1).results if each.guard == "failures"
    ]
    assert failures.p < 1e-9
    assert not failures.is_crossed


def test_of_healthy_canaries_few_are_stopped_and_of_harmful_ones_most() -> None:
    """The short form of the figures in docs/canary.md."""
    healthy = [
        simulated.stopped_at(simulated.CONTROL, random.Random(f"h{n}"), most=200) for n in range(30)
    ]
    assert sum(at is not None for at in healthy) <= 4
    harm = simulated.HARM["failures 2 % → 10 %"]
    harmful = [simulated.stopped_at(harm, random.Random(f"f{n}"), most=400) for n in range(12)]
    assert sum(at is not None for at in harmful) >= 9


@given(st.text(min_size=1), st.floats(0, 100), st.floats(0, 100))
def test_what_is_in_a_share_is_in_every_larger_one(key: str, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert not is_in_share(key, small, "salt") or is_in_share(key, large, "salt")
    assert is_in_share(key, 100, "salt")
    assert not is_in_share(key, 0, "salt")


def test_a_share_is_as_large_as_it_says_and_another_salt_takes_other_pages() -> None:
    keys = [f"https://shop.test/{number}" for number in range(20_000)]
    ours = {key for key in keys if is_in_share(key, 10, "one")}
    others = {key for key in keys if is_in_share(key, 10, "two")}
    assert 1850 < len(ours) < 2150
    assert 100 < len(ours & others) < 300


def test_a_share_of_sources_has_at_least_one() -> None:
    keys = [f"s{number}.test" for number in range(40)]
    assert len(sources_in_share(keys, 5, "x")) == 2
    assert len(sources_in_share(keys[:3], 5, "x")) == 1
    assert set(sources_in_share(keys, 5, "x")) <= set(sources_in_share(keys, 20, "x"))
