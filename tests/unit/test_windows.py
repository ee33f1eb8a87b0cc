"""Windows tile a stretch of time, whatever the zone does with its clocks."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import PipelineError
from penstock.jobs.run import RunKind
from penstock.jobs.windows import DAY_S, Window, Windows, gaps, moment
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.planner import PLANNER
from penstock.pipeline.step import DataError, window_of

ZONES = sorted(name for name in available_timezones() if "/" in name)
HOUR_S = 3600.0


def stamp(text: str, zone: str = "UTC") -> float:
    return moment(text, zone)


@given(
    start_at=st.integers(0, 2_500_000_000),
    length_s=st.integers(1, 500 * 86_400),
    window_s=st.one_of(
        st.integers(1, 40).map(lambda days: days * DAY_S), st.integers(3600, 10**6).map(float)
    ),
    zone=st.sampled_from(ZONES),
    partitions=st.integers(1, 3),
)
@example(1_325_000_000, 20 * 86_400, DAY_S, "Pacific/Apia", 2)  # which skipped a whole day
@example(
    1_400_000_000, 200 * 86_400, DAY_S, "America/Asuncion", 1
)  # whose clocks change at midnight
def test_units_tile_the_stretch_exactly(
    start_at: int, length_s: int, window_s: float, zone: str, partitions: int
) -> None:
    names = tuple(f"p{number}" for number in range(partitions))
    windows = Windows(start_at, start_at + length_s, window_s, names, zone)

    units = list(windows.units())

    assert len(units) == windows.expected() <= windows.total
    for name in names:
        own = [unit for unit in units if unit.partition == name]
        assert (own[0].start_at, own[-1].end_at) == (start_at, start_at + length_s)
        assert all(one.end_at == two.start_at for one, two in pairwise(own))
        assert all(unit.start_at < unit.end_at for unit in own)


@given(first=st.integers(0, 800), zone=st.sampled_from(["UTC", "Europe/Paris", "Pacific/Apia"]))
def test_plan_that_goes_on_from_a_number_makes_the_same_units(first: int, zone: str) -> None:
    windows = Windows(1.3e9, 1.3e9 + 400 * DAY_S, DAY_S, ("a", "b"), zone, "weekdays")

    whole = [(number, windows.unit(number)) for number in range(windows.total)]

    assert list(windows.units(first)) == [u for number, u in whole if number >= first and u]


def test_days_in_which_clocks_change_have_23_and_25_hours() -> None:
    zone = "Europe/Paris"
    windows = Windows(stamp("2024-01-01", zone), stamp("2025-01-01", zone), DAY_S, ("a",), zone)

    lengths = {
        u.start.astimezone(ZoneInfo(zone)).date(): u.end_at - u.start_at for u in windows.units()
    }

    assert len(lengths) == 366
    odd = {day: length for day, length in lengths.items() if length != DAY_S}
    assert odd == {date(2024, 3, 31): 23 * HOUR_S, date(2024, 10, 27): 25 * HOUR_S}


def test_weekends_and_holidays_are_not_expected() -> None:
    holidays = frozenset({"2026-12-25"})
    windows = Windows(
        stamp("2026-12-19"), stamp("2026-12-29"), DAY_S, ("a",), "UTC", "weekdays", holidays
    )

    days = [unit.start.date().isoformat() for unit in windows.units()]

    assert days == ["2026-12-21", "2026-12-22", "2026-12-23", "2026-12-24", "2026-12-28"]


def test_week_with_one_day_on_which_there_is_something_is_expected() -> None:
    monday = stamp("2026-11-02")
    windows = Windows(monday - DAY_S, monday + 6 * DAY_S, 7 * DAY_S, ("a",), "UTC", "weekdays")

    assert windows.expected() == 1
    assert Windows(monday - 2 * DAY_S, monday, 7 * DAY_S, ("a",), "UTC", "weekdays").expected() == 0


@given(
    covered=st.lists(
        st.tuples(st.integers(-50, 150), st.integers(1, 60)).map(lambda p: (p[0], p[0] + p[1]))
    )
)
def test_gaps_are_what_is_covered_by_nothing(covered: list[tuple[int, int]]) -> None:
    window = Window("a", 0, 100)

    found = gaps(window, sorted((float(a), float(b)) for a, b in covered))

    missing = {s for s in range(100) if not any(a <= s < b for a, b in covered)}
    assert {s for gap in found for s in range(int(gap.start_at), int(gap.end_at))} == missing
    assert all(one.end_at < two.start_at for one, two in pairwise(found))


def test_day_that_ends_something_is_meant_to_its_end() -> None:
    assert moment("2024-12-31", "UTC", is_end=True) == stamp("2025-01-01")
    assert moment("2024-12-31T00:00:00Z", "Asia/Tokyo", is_end=True) == stamp("2024-12-31")
    assert moment("2024-12-31T09:00", "Asia/Tokyo") == stamp("2024-12-31")
    assert moment(date(2024, 12, 31), "UTC") == stamp("2024-12-31")
    assert moment(5, "Asia/Tokyo") == 5.0
    with pytest.raises(ValueError, match="yesterday"):
        moment("yesterday", "UTC")


def test_window_is_the_same_however_its_times_are_written() -> None:
    one = window_of("fetch", {"partition": "eur", "from": "2024-01-01", "to": "2024-01-02"})
    two = window_of(
        "fetch", {"partition": "eur", "from": "2024-01-01T01:00+01:00", "to": "2024-01-02T00:00Z"}
    )

    assert one.key() == two.key() == "eur|2024-01-01T00:00:00Z|2024-01-02T00:00:00Z"
    assert window_of("fetch", one.item()) == one


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("x", "takes windows, and a str is none"),
        ({"from": "2024-01-01"}, "needs 'to' as a time such as 2024-01-01, not None"),
        ({"from": "soon", "to": "2024-01-01"}, "needs 'from' as a time"),
        ({"from": "2024-01-02", "to": "2024-01-01"}, "ends after it begins"),
        ({"from": "2024-01-01", "to": "2024-01-02", "partition": 7}, "partition is text, not 7"),
    ],
)
def test_item_that_is_no_window_is_told_in_a_line(item: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        window_of("fetch", item)


# Steps that take windows.


def pipeline(**options: Any) -> Pipeline:
    made = Pipeline("prices")

    @made.step(unit="run")
    async def discover(ctx: Any) -> Any:
        yield {}

    @made.step(**{"after": "discover", "unit": "page", "windows": True, **options})
    async def fetch(ctx: Any) -> Any:
        yield {}

    @made.step(after="fetch", unit="candidate")
    def persist(row: Any, ctx: Any) -> None:
        return None

    @made.step(after=("persist", "discover"), unit="run", gather=True)
    def summary(ctx: Any) -> None:
        return None

    return made


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit": "candidate"}, "is of unit 'page', not unit 'candidate'"),
        ({"unit": "run"}, "is of unit 'page', not unit 'run'"),
        ({"gather": True}, "is of unit 'page', not a gather step"),
        ({"key": "from"}, "it has no key="),
    ],
)
def test_step_that_takes_windows_is_a_page_without_a_key(
    options: dict[str, object], words: str
) -> None:
    with pytest.raises(PipelineError, match=words):
        pipeline(**options).compile()


def test_only_one_step_takes_windows() -> None:
    made = pipeline()

    @made.step(unit="page", windows=True)
    def also(item: Any) -> None:
        return None

    with pytest.raises(PipelineError, match="'fetch' and 'also' take windows"):
        made.compile()


def test_backfill_begins_with_the_planner_and_leaves_out_what_leads_to_the_windows() -> None:
    graph = pipeline().compile()

    plan = graph.plan(kind=RunKind.BACKFILL)

    assert [(stage.name, stage.after) for stage in plan.stages] == [
        (PLANNER, ()), ("fetch", (PLANNER,)), ("persist", ("fetch",)), ("summary", ("persist",)),
    ]  # fmt: skip
    assert graph.stage(PLANNER) is not None
    assert PLANNER not in [stage.name for stage in graph.plan().stages]


def test_windows_step_that_begins_nothing_is_for_backfills_only() -> None:
    made = pipeline(after=())
    graph = made.compile()

    assert [stage.name for stage in graph.plan().stages] == ["discover", "summary"]
    assert [stage.name for stage in graph.plan(kind=RunKind.BACKFILL).stages][:2] == [
        PLANNER,
        "fetch",
    ]


def test_pipeline_without_windows_can_not_be_backfilled_and_says_how_it_could() -> None:
    made = Pipeline("pages")

    @made.step(unit="run")
    def discover() -> None:
        return None

    with pytest.raises(PipelineError, match="no step that takes windows") as told:
        made.compile().plan(kind=RunKind.BACKFILL)
    assert "windows=True" in told.value.hint
