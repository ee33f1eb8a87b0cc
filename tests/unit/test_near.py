"""Near: looked at more often around announced moments, and never more seldom than asked."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.leader.scheduler import Scheduler
from penstock.engine.worker.child_protocol import effects_from, pack
from penstock.http.network import RawResponse, Request
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed
from penstock.pipeline.attempt import Attempt, StepRun, StepSource
from penstock.pipeline.context import Context
from penstock.pipeline.step import DataError
from penstock.project import Project
from penstock.schedules import Schedule, schedule_from
from penstock.schedules.definition import policy_words
from penstock.schedules.due import Ticking
from penstock.schedules.near import near, spans_around
from penstock.settings import ScheduleSettings
from penstock.settings.values import NearSettings
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock
from tests.unit.performing import ListedServices, begun

T = 1_800_000_000.0
SETTINGS = ScheduleSettings("every", every_s=60.0, near=NearSettings(600.0, 5.0))
moments_of = st.lists(st.integers(-3000, 9000).map(lambda each: T + each / 4), max_size=8)


def dues(schedule: Schedule, after: float, until: float) -> list[float]:
    found = []
    while (due := schedule.next_due(after)) is not None and due <= until:
        found.append(due)
        after = due
    return found


def test_window_begins_with_a_tick_and_has_short_intervals_to_its_end() -> None:
    rule = near(schedule_from(SETTINGS), [T + 1000.0])
    found = dues(rule, T, T + 1800.0)
    before = [each for each in found if each < T + 400.0]
    within = [each for each in found if T + 400.0 <= each <= T + 1600.0]
    assert before == [T + 60.0 * n for n in range(1, 7)]
    assert within == [T + 400.0 + 5.0 * n for n in range(241)]
    assert found[len(before + within) :] == [T + 1660.0, T + 1720.0, T + 1780.0]


def test_without_announced_moments_it_is_the_interval_alone() -> None:
    assert dues(schedule_from(SETTINGS), T, T + 300.0) == [T + 60.0 * n for n in range(1, 6)]


def test_moments_change_nothing_for_schedules_that_do_not_go_by_them() -> None:
    rule = schedule_from(ScheduleSettings("every", every_s=60.0))
    assert near(rule, [T]) is rule


def test_windows_that_touch_are_one() -> None:
    assert spans_around([T + 30.0, T, T + 300.0], 20.0) == (
        (T - 20.0, T + 50.0),
        (T + 280.0, T + 320.0),
    )


def test_words_say_how_often_it_is_near() -> None:
    said = "every minute, every 5 seconds within 10 minutes of an announced moment"
    assert policy_words(SETTINGS, "acme.com") == said
    hourly = ScheduleSettings("every", every_s=7200.0, near=NearSettings(3600.0, 60.0))
    assert (
        schedule_from(hourly).words().endswith("every minute within 1 hour of an announced moment")
    )


@given(
    moments=moments_of,
    every_s=st.integers(2, 900),
    near_s=st.integers(1, 60),
    window_s=st.integers(1, 900),
    share=st.floats(0.0, 1.0),
    offset=st.floats(0.0, 1000.0),
)
def test_gaps_are_never_longer_than_allowed_and_no_window_is_jumped_over(
    moments: list[float], every_s: int, near_s: int, window_s: int, share: float, offset: float
) -> None:
    near_s = min(near_s, every_s - 1)
    jitter_s = every_s * share if share > 0.5 else 0.0
    settings = ScheduleSettings(
        "every",
        every_s=float(every_s),
        jitter_s=jitter_s,
        near=NearSettings(window_s, near_s),
    )
    rule = Ticking(near(schedule_from(settings, "acme.com"), moments))
    spans = spans_around(moments, window_s)
    found = [T + offset, *dues(rule, T + offset, T + 2500.0)]
    for before, after in pairwise(found):
        assert before < after
        is_near = any(begin <= before and before + near_s <= end for begin, end in spans)
        allowed_s = near_s if is_near else every_s + jitter_s
        assert after - before <= allowed_s + 0.002
        assert not any(before < begin < after - 0.002 for begin, _ in spans)


# What a step may announce.


def announcing(*moments: Any, kind: str = "full") -> list[float]:
    stage = begun().compile().stage("begin")
    assert stage is not None
    job = Claimed(1, 7, 3, "begin", "key", 1, 0, 0, 0, False, "null")
    source, run = StepSource("acme.com"), StepRun(7, kind)
    attempt = Attempt(job, stage, source, run, ListedServices(), VirtualClock())
    for at in moments:
        Context(attempt, "begin").announce(at)
    return attempt.effects.moments


def test_step_announces_a_time_with_a_zone_or_seconds() -> None:
    noon = datetime(2027, 1, 15, 12, tzinfo=timezone(timedelta(hours=2)))
    same = noon.astimezone(UTC)
    assert announcing(noon, same, same.timestamp(), 1_800_000_000, T + 0.25) == [
        same.timestamp(),
        T,
        T + 0.25,
    ]


@pytest.mark.parametrize("kind", ["probe", "replay", "backfill"])
def test_what_other_runs_announce_is_let_be(kind: str) -> None:
    assert announcing(T, kind=kind) == []
    with pytest.raises(DataError):
        announcing("soon", kind=kind)


@pytest.mark.parametrize(
    "wrong", ["soon", None, True, float("nan"), float("inf"), -5, 0, T * 1000, [T], 10**400]
)
def test_anything_else_is_refused_with_what_is_needed(wrong: Any) -> None:
    with pytest.raises(DataError, match=r"step 'begin': ctx.announce needs a datetime with a zone"):
        announcing(wrong)


def test_step_announces_so_many_moments_at_most() -> None:
    assert len(announcing(*(T + n for n in range(1000)), T)) == 1000
    with pytest.raises(DataError, match="at most 1,000 times in one attempt"):
        announcing(*(T + n for n in range(1001)))


def test_time_without_a_zone_is_refused() -> None:
    naive = datetime(2027, 1, 15, 12)  # noqa: DTZ001
    with pytest.raises(DataError, match="needs a time with a zone, not 2027-01-15 12:00:00"):
        announcing(naive)


def test_what_was_announced_is_handed_over_and_poured_together() -> None:
    effects = Effects(moments=[T])
    assert effects
    taken = effects.take()
    assert not effects
    taken.pour(Effects(moments=[T + 1]))
    assert effects_from(pack(taken)).moments == [T, T + 1], "and comes out of a child process"


# The whole of it.

STEPS = """
from penstock import Pipeline

launch = Pipeline("launch")


@launch.step(unit="run")
async def look(ctx):
    ctx.announce(ctx.params["at"])
"""


async def nothing(request: Request) -> RawResponse:
    raise AssertionError(request.url)


def test_source_that_announces_a_launch_is_looked_at_more_often_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    launch_at = clock.now() + 1500.0
    source = {
        "pipeline": "near_steps:launch",
        "params": {"at": launch_at},
        "schedule": {"every": "5m", "near": {"window": "2m", "every": "10s"}},
    }
    written = {"project": "near", "sources": {"acme.com": source}}
    (tmp_path / "penstock.yaml").write_text(json.dumps(written))
    (tmp_path / "near_steps.py").write_text(STEPS)
    monkeypatch.syspath_prepend(tmp_path)
    began_at = clock.now()
    with (
        Project.open(tmp_path) as project,
        Simulation(project, ScriptedNetwork(nothing), seed=1, clock=clock) as simulation,
    ):
        scheduler = Scheduler(project, project.connection)
        scheduler.plan()
        while clock.now() < began_at + 2400.0:
            scheduler.tick()
            simulation.run()
            clock.advance(1.0)
        source_id = project.source_ids["acme.com"]
        ticks = project.connection.schedules.ticks(source_id, "main", 1000)[::-1]
        assert project.connection.announcements.of(source_id) == [launch_at]
    sys.modules.pop("near_steps", None)

    assert {tick.outcome for tick in ticks} == {"fired"}
    found = [tick.due_at - began_at for tick in ticks]
    assert found[:4] == [300.0, 600.0, 900.0, 1200.0]
    assert found[4:29] == [1380.0 + 10.0 * n for n in range(25)], "from 2 m before to 2 m after"
    assert found[29:] == [1920.0, 2220.0], "and then by its interval again"
