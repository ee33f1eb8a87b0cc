"""Floors: what was taken is not looked at again, and nothing stays hidden behind them."""

from __future__ import annotations

from penstock.store.turn.watermarks import BEGINNING, DUE_MARGIN_S, LONGEST_S, SHARE, Floors


def test_claims_begin_behind_the_last_key_taken() -> None:
    floors = Floors()
    floors.raise_to(1, "extract", (5.0, 7))

    assert floors.of(1, "extract") == (5.0, 7)
    assert floors.of(2, "extract") == BEGINNING
    assert floors.all() == [(1, "extract", 5.0, 7)]


def test_job_that_comes_back_lowers_the_floor_to_just_before_it() -> None:
    floors = Floors()
    floors.raise_to(1, "extract", (5.0, 7))

    floors.lower_to(1, "extract", (3.0, 2))
    assert floors.of(1, "extract") < (3.0, 2)
    floors.lower_to(1, "extract", (9.0, 9))
    assert floors.of(1, "extract") == (3.0, 1)


def test_same_key_as_the_floor_lowers_it() -> None:
    floors = Floors()
    floors.raise_to(1, "extract", (5.0, 7))

    floors.lower_to(1, "extract", (5.0, 7))

    assert floors.of(1, "extract") < (5.0, 7)


def test_floors_are_dropped_when_they_are_old() -> None:
    floors = Floors()
    assert floors.drop_if_old(100.0)
    floors.raise_to(1, "extract", (5.0, 7))

    assert not floors.drop_if_old(100.0 + LONGEST_S - 0.1)
    assert floors.of(1, "extract") == (5.0, 7)
    assert floors.drop_if_old(100.0 + LONGEST_S)
    assert floors.of(1, "extract") == BEGINNING


def test_looking_from_the_beginning_takes_a_small_share_of_the_time() -> None:
    """A look that takes a second, because of a snapshot that somebody holds, comes every 20 s."""
    floors = Floors()
    floors.drop_if_old(100.0)
    floors.looked(100.0, 101.0)

    assert not floors.may_look(101.0 + 1.0 / SHARE - 0.1)
    assert not floors.drop_if_old(101.0 + 1.0 / SHARE - 0.1)
    assert floors.may_look(101.0 + 1.0 / SHARE)
    assert floors.drop_if_old(101.0 + 1.0 / SHARE)


def test_what_waits_is_looked_for_behind_what_was_woken() -> None:
    floors = Floors()
    assert floors.due_after(1000.0) == BEGINNING[0]
    floors.woke_all(1000.0)

    assert floors.due_after(1001.0) == 1000.0 - DUE_MARGIN_S
    assert floors.due_after(1000.0 + DUE_MARGIN_S) == BEGINNING[0]


def test_clock_that_steps_back_hides_nothing() -> None:
    floors = Floors()
    floors.due_after(5000.0)
    floors.woke_all(5000.0)

    assert floors.due_after(1400.0) == BEGINNING[0]
