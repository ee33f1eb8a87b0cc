"""When a page was changed last, as its site says: trusted only as far as it is safe."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from penstock.http.lastmod import WESTMOST_S, is_older, span_of

DAY_S = 86400.0


def at(year: int, month: int, day: int, *clock: int) -> float:
    hour, minute, second = (*clock, 0, 0, 0)[:3]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "first", "length_s"),
    [
        ("2026", at(2026, 1, 1), 365 * DAY_S + WESTMOST_S),
        ("2026-11", at(2026, 11, 1), 30 * DAY_S + WESTMOST_S),
        ("2026-12", at(2026, 12, 1), 31 * DAY_S + WESTMOST_S),
        ("2026-11-14", at(2026, 11, 14), DAY_S + WESTMOST_S),
        ("20261114", at(2026, 11, 14), DAY_S + WESTMOST_S),
        ("2026-11-14T10:30Z", at(2026, 11, 14, 10, 30), 60.0),
        ("2026-11-14T10:30:15Z", at(2026, 11, 14, 10, 30, 15), 1.0),
        ("2026-11-14T10:30:15.25+00:00", at(2026, 11, 14, 10, 30, 15) + 0.25, 1.0),
        ("2026-11-14T12:30:15+02:00", at(2026, 11, 14, 10, 30, 15), 1.0),
        ("2026-11-14 10:30:15", at(2026, 11, 14, 10, 30, 15), 1.0 + WESTMOST_S),
        ("Sat, 14 Nov 2026 10:30:15 GMT", at(2026, 11, 14, 10, 30, 15), 1.0),
        ("  2026-11-14\n", at(2026, 11, 14), DAY_S + WESTMOST_S),
    ],
)
def test_time_is_read_with_how_exactly_it_is_told(text: str, first: float, length_s: float) -> None:
    span = span_of(text)
    assert span is not None
    assert span[0] == first
    assert span[1] - span[0] == pytest.approx(length_s, abs=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "yesterday",
            "0",
            "-1",
            "1763200000",
            "2026-13",
            "2026-02-30",
            "2026-11-14T25:00Z",
        ),
        *(
            "2026-11-14T",
            "0000-00-00",
            "99999-01-01",
            "14.11.2026",
            "null",
            "\x00",
            "2" * 1000,
            "٢٠٢٦",
        ),
    ],
)
def test_what_is_no_time_names_none(text: str) -> None:
    assert span_of(text) is None


def test_no_text_at_all_makes_it_fail() -> None:
    chance = random.Random(5)
    for _ in range(3000):
        text = "".join(
            chance.choices("0123456789-:TZ+. ,GMTNovSat\x00é", k=chance.randrange(0, 40))
        )
        span = span_of(text)
        assert span is None or span[0] < span[1]


FETCHED = at(2026, 11, 20, 12)


@pytest.mark.parametrize(
    ("announced", "done_announced", "is_as_it_was"),
    [
        ("2026-11-01", "2026-11-01", True),
        ("2026-10-31", "2026-11-01", True),
        ("2026-11-02", "2026-11-01", False),
        # The same moment in other words.
        ("2026-11-01T12:00:00+02:00", "2026-11-01T10:00:00Z", True),
        ("Sun, 01 Nov 2026 10:00:00 GMT", "2026-11-01T10:00:00Z", True),
        # The day of the fetch has hours that were still to come; so has the day before, somewhere.
        ("2026-11-20", "2026-11-20", False),
        ("2026-11-19", "2026-11-19", True),
        ("2026-11-20T11:59:58Z", "2026-11-20T11:59:58Z", True),
        ("2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z", False),
        ("2026-11-20T11:59:58", "2026-11-20T11:59:58", False),
        # A year or a month that is not over says nothing.
        ("2026", "2026", False),
        ("2026-11", "2026-11", False),
        ("2025", "2025", True),
        # The future names nothing, nor does garbage, nor silence.
        ("2099-01-01", "2099-01-01", False),
        ("soon", "soon", False),
        ("", "", False),
        ("2026-11-01", "", False),
        ("", "2026-11-01", False),
        ("2026-11-01", "soon", False),
    ],
)
def test_page_is_taken_to_be_as_it_was_only_when_that_is_sure(
    announced: str, done_announced: str, is_as_it_was: bool
) -> None:
    assert is_older(announced, done_announced, FETCHED) is is_as_it_was
