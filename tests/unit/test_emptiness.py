"""A run of which nothing came: as expected, unexpected, or not allowed to look."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from penstock.jobs.emptiness import (
    AS_EXPECTED,
    NOT_ALLOWED,
    UNEXPECTED,
    Ending,
    Yield,
    end_of_empty,
    fallen_from,
)
from penstock.jobs.run import NO_OPTIONS, RunKind, RunOptions, RunState, StageCount
from penstock.jobs.run_sums import Fates, account_of

YIELDED, NOTHING, LOOKED = Yield(10, 4), Yield(0, 0), Yield(0, 4)
COMPLETED, PARTIAL, FAILED = RunState.COMPLETED, RunState.PARTIAL, RunState.FAILED


def an_ending(
    pages: StageCount | None = None,
    candidates: StageCount | None = None,
    *,
    kind: RunKind = RunKind.FULL,
    options: RunOptions = NO_OPTIONS,
    records: int = 0,
    unchanged: int = 0,
    refused: int = 0,
) -> Ending:
    pages, candidates = pages or StageCount(), candidates or StageCount()
    account = account_of(
        pages,
        candidates,
        pages_added=pages.total,
        fates=Fates(candidates.total, rejected=candidates.succeeded),
    )
    return Ending(
        kind,
        options,
        account,
        Yield(records, pages.succeeded + unchanged),
        unchanged,
        refused,
        pages.skipped + pages.quarantined,
    )


@pytest.mark.parametrize(
    ("run", "is_empty"),
    [
        (an_ending(), True),
        (an_ending(StageCount(succeeded=3)), True),
        (an_ending(kind=RunKind.INCREMENTAL), True),
        (an_ending(kind=RunKind.BACKFILL), True),
        (an_ending(records=1), False),
        (an_ending(StageCount(skipped=3), kind=RunKind.INCREMENTAL, unchanged=3), False),
        (an_ending(StageCount(cancelled=3)), False),
        (an_ending(options=RunOptions(continues=1)), False),
        (an_ending(kind=RunKind.PROBE), False),
        (an_ending(kind=RunKind.REPLAY), False),
        (an_ending(kind=RunKind.STREAM), False),
    ],
)
def test_run_is_empty_when_nothing_came_of_it_and_nobody_meant_it_so(
    run: Ending, is_empty: bool
) -> None:
    assert run.is_empty == is_empty


def test_first_empty_run_is_as_expected() -> None:
    assert end_of_empty(COMPLETED, an_ending(), []) == (COMPLETED, AS_EXPECTED)


@pytest.mark.parametrize(
    ("before", "is_usual"),
    [
        ([YIELDED] * 3, True),
        ([YIELDED] * 3 + [NOTHING] * 2, True),
        ([NOTHING] * 2 + [YIELDED] * 3, True),
        ([YIELDED] * 2 + [NOTHING] * 3, False),
        ([NOTHING] * 5 + [YIELDED] * 9, False),
        ([YIELDED] * 2, False),
    ],
)
def test_what_is_usual_is_what_three_of_the_last_five_did(
    before: list[Yield], is_usual: bool
) -> None:
    expected = (PARTIAL, UNEXPECTED) if is_usual else (COMPLETED, AS_EXPECTED)

    assert end_of_empty(COMPLETED, an_ending(), before) == expected


def test_pages_without_records_are_unexpected_where_records_are_usual() -> None:
    run = an_ending(StageCount(succeeded=4))

    assert end_of_empty(COMPLETED, run, [YIELDED] * 3) == (PARTIAL, UNEXPECTED)


def test_pages_without_records_are_fine_where_pages_are_all_there_is() -> None:
    run = an_ending(StageCount(succeeded=4))

    assert end_of_empty(COMPLETED, run, [LOOKED] * 5) == (COMPLETED, "")


def test_no_pages_are_unexpected_where_pages_are_usual() -> None:
    assert end_of_empty(COMPLETED, an_ending(), [LOOKED] * 3) == (PARTIAL, UNEXPECTED)


def test_candidates_that_were_all_rejected_are_nothing_either() -> None:
    run = an_ending(StageCount(succeeded=4), StageCount(succeeded=9))

    assert end_of_empty(COMPLETED, run, [LOOKED] * 3) == (COMPLETED, AS_EXPECTED)
    assert end_of_empty(COMPLETED, run, [YIELDED] * 3) == (PARTIAL, UNEXPECTED)


def test_backfill_that_found_nothing_is_not_compared() -> None:
    run = an_ending(kind=RunKind.BACKFILL)

    assert end_of_empty(COMPLETED, run, [YIELDED] * 5) == (COMPLETED, AS_EXPECTED)


@pytest.mark.parametrize("state", [COMPLETED, PARTIAL, FAILED])
def test_run_that_was_refused_everything_was_not_allowed_to_look(state: RunState) -> None:
    pages = StageCount(skipped=2, quarantined=1)

    assert end_of_empty(state, an_ending(pages, refused=3), [YIELDED] * 5) == (FAILED, NOT_ALLOWED)


def test_run_that_was_refused_a_part_was_allowed_to_look() -> None:
    some = an_ending(StageCount(skipped=2, quarantined=1), refused=2)
    looked = an_ending(StageCount(succeeded=1, skipped=2), refused=2)

    assert end_of_empty(PARTIAL, some, []) == (PARTIAL, "")
    assert end_of_empty(COMPLETED, looked, []) == (COMPLETED, "")


def test_failed_run_has_its_own_reason() -> None:
    run = an_ending(StageCount(quarantined=3))

    assert end_of_empty(FAILED, run, [YIELDED] * 5) == (FAILED, "")
    assert end_of_empty(PARTIAL, run, []) == (PARTIAL, "")


# A sharp fall.


def fallen(brought: int, *before: int, state: RunState = COMPLETED, **about: Any) -> float | None:
    run = replace(an_ending(**about), found=Yield(brought, 1, brought))
    return fallen_from(state, run, [Yield(each, 1, each) for each in before])


def test_less_than_half_of_the_median_is_a_fall() -> None:
    assert fallen(49, 100, 90, 5000, 110, 3) == 100
    assert fallen(50, 100, 90, 5000, 110, 3) is None


def test_only_the_last_five_runs_are_usual_and_three_must_have_brought_something() -> None:
    assert fallen(40, 80, 80, 80, 80, 80, 900, 900, 900) is None
    assert fallen(39, 0, 80, 0, 80, 80) == 80
    assert fallen(42, 0, 0, 90, 80, 100) == 90, "what failed is not usual"
    assert fallen(1, 0, 80, 0, 80, 0, 80) is None
    assert fallen(1, 80, 80) is None


def test_few_records_may_be_fewer_by_chance() -> None:
    assert fallen(4, 9, 9, 9) is None
    assert fallen(4, 10, 10, 10) == 10


@pytest.mark.parametrize("kind", [RunKind.BACKFILL, RunKind.PROBE, RunKind.REPLAY, RunKind.STREAM])
def test_runs_of_other_kinds_fall_from_nothing(kind: RunKind) -> None:
    assert fallen(1, 100, 100, 100, kind=kind) is None
    assert fallen(1, 100, 100, 100, kind=RunKind.INCREMENTAL) == 100


def test_what_failed_was_cancelled_or_continues_another_is_not_compared() -> None:
    usual = (100, 100, 100)
    assert fallen(1, *usual, state=PARTIAL) == 100
    assert fallen(1, *usual, state=FAILED) is None
    assert fallen(1, *usual, pages=StageCount(succeeded=1, cancelled=1)) is None
    assert fallen(1, *usual, options=RunOptions(continues=1)) is None
