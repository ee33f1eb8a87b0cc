"""Accounts: what was found is what became of it, and a difference shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.jobs.effects import Effects, Note, Rejection, Save
from penstock.jobs.job import NewJob
from penstock.jobs.run import StageCount
from penstock.jobs.run_sums import Fates, RunSums, account_of, fate_of

SAVE = Save("product", "k", b"{}", None, "replace")
CHILD = NewJob("further", "k", b"{}")
NO = Rejection("no_price", "no price")


@pytest.mark.parametrize(
    ("effects", "has_changed", "fate"),
    [
        (Effects(saves=[SAVE]), True, "accepted"),
        (Effects(saves=[SAVE]), False, "duplicate"),
        (Effects(saves=[SAVE]), None, "accepted"),
        (Effects(saves=[SAVE], rejections=[NO]), False, "duplicate"),
        (Effects(saved_before=2), None, "accepted"),
        (Effects(saves=[SAVE], saved_before=2), False, "accepted"),
        (Effects(probed={"would_save": 1}), None, "accepted"),
        (Effects(probed={"rejected": 1}), None, "rejected"),
        (Effects(rejections=[NO]), None, "rejected"),
        (Effects(rejections=[NO], children=[CHILD]), None, "rejected"),
        (Effects(children=[CHILD]), None, "passed"),
        (Effects(is_dropped=True), None, "dropped"),
        (Effects(notes=[Note("sent elsewhere")]), None, "accepted"),
        (Effects(), None, "accepted"),
    ],
)
def test_every_candidate_that_succeeded_came_to_one_thing(
    effects: Effects, has_changed: bool | None, fate: str
) -> None:
    assert fate_of(effects, has_changed) == fate


numbers = st.integers(0, 50)
counts = st.builds(StageCount, *[numbers] * 8)


@given(pages=counts, candidates=counts, fates=st.lists(numbers, min_size=5, max_size=5))
def test_sums_add_up_when_every_success_has_a_fate(
    pages: StageCount, candidates: StageCount, fates: list[int]
) -> None:
    succeeded = sum(fates)
    open_or_ended = candidates.total - candidates.succeeded
    found = account_of(
        pages,
        candidates,
        pages_added=pages.total,
        fates=Fates(open_or_ended + succeeded, *fates),
    )

    assert (found.pages.unaccounted, found.candidates.unaccounted) == (0, 0)
    assert found.unaccounted == 0


def a_run(pages_added: int = 3, candidates_added: int = 2, is_kept: bool = True) -> RunSums:
    return account_of(
        StageCount(succeeded=2, quarantined=1),
        StageCount(succeeded=2),
        pages_added=pages_added,
        fates=Fates(candidates_added, accepted=1, rejected=1),
        is_kept=is_kept,
    )


@pytest.mark.parametrize(
    ("found", "pages", "candidates"),
    [(a_run(), 0, 0), (a_run(pages_added=4), 1, 0), (a_run(candidates_added=1), 0, -1)],
)
def test_what_is_lost_or_counted_twice_shows(found: RunSums, pages: int, candidates: int) -> None:
    assert (found.pages.unaccounted, found.candidates.unaccounted) == (pages, candidates)
    assert found.unaccounted == abs(pages) + abs(candidates)


def test_what_is_lost_on_one_side_is_not_made_up_for_on_the_other() -> None:
    found = a_run(pages_added=4, candidates_added=1)

    assert found.unaccounted == 2
    assert found.difference == "1 page, -1 candidates"


def test_run_that_older_code_had_a_hand_in_has_no_difference() -> None:
    found = a_run(pages_added=0, candidates_added=0, is_kept=False)

    assert found.unaccounted == 0
    assert (found.pages.discovered, found.candidates.candidates) == (3, 2)


def test_candidate_that_was_skipped_was_dropped() -> None:
    skipped = StageCount(skipped=2)
    found = account_of(StageCount(), skipped, pages_added=0, fates=Fates(added=2))

    assert (found.candidates.dropped, found.unaccounted) == (2, 0)
