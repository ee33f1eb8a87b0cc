"""Hosts with hours and breakers of their own: as they are written, asked, and kept by everybody."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.leader.leader_loop import LeaderLoop
from penstock.engine.worker.child_protocol import error_from, refusal_of
from penstock.engine.worker.hosts import HostWatch
from penstock.errors import ConfigError
from penstock.gates.admission import Book, admit
from penstock.gates.project_terms import (
    NO_TERMS,
    HostLimit,
    Terms,
    hours_definitions,
    hours_of,
    rules_of,
)
from penstock.gates.rates import RateDecision, RateRequest, Sent
from penstock.http.failures import FetchError, HostOutside
from penstock.http.network import RawResponse, Request
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Snoozed
from penstock.pipeline.error_outcome import outcome_of
from penstock.project import Project
from penstock.settings import BreakerSettings, HostLimits, Settings, load_settings
from penstock.settings.opening_hours import OpeningHours, parse_window
from penstock.store.breaker_rows import HOST_RULE
from penstock.store.hosts import HostTold
from penstock.store.jobs import JobFilter
from penstock.testing import (
    EPOCH,
    ScriptedNetwork,
    Simulation,
    VirtualClock,
    journal,
    run_together,
)
from tests.unit import catalogue

pytestmark = pytest.mark.usefixtures("pipelines")

HOST = "cdn.example"
# Virtual time begins on 2027-01-15 at 08:00 UTC, twenty minutes before.
TWENTY_PAST = {"windows": ["09:20-10:00"], "timezone": "Europe/Paris"}
OPENS_S = 20 * 60.0


def settings(folder: Path, hosts: Any, *changes: str) -> Settings:
    config = {"hosts": hosts, "sources": {"shop": {"pipeline": "a:b"}}}
    (folder / "penstock.yaml").write_text(json.dumps(config, indent=1))
    return load_settings(folder, environ={}, changes=changes)


# As they are written.


def test_hours_and_breaker_of_a_host_are_read_as_those_of_a_source(tmp_path: Path) -> None:
    hosts = {
        HOST: {**TWENTY_PAST, "breaker": {"ratio": 0.2, "at_least": 3, "open_for": "2h"}},
        "old.example": {"breaker": "off"},
        "new.example": {"windows": "22:00-06:00", "breaker": False},
    }
    found = settings(tmp_path, hosts)
    assert found.hosts == {
        HOST: HostLimits(
            windows=(parse_window("09:20-10:00"),),
            timezone="Europe/Paris",
            # Who is left alone for two hours is never left alone for less.
            breaker=BreakerSettings(ratio=0.2, at_least=3, open_for_s=7200.0, longest_s=7200.0),
        ),
        "old.example": HostLimits(breaker=None),
        "new.example": HostLimits(windows=(parse_window("22:00-06:00"),), breaker=None),
    }
    assert hours_of(found).keys() == {HOST, "new.example"}


def test_host_with_nothing_but_a_breaker_costs_its_requests_nothing(tmp_path: Path) -> None:
    rules = rules_of(settings(tmp_path, {"old.example": {"breaker": "off"}, HOST: TWENTY_PAST}))
    assert rules.terms("shop", "old.example") is NO_TERMS
    assert rules.breakers == {"old.example": None, HOST: BreakerSettings()}
    assert rules.hours("old.example") is NO_TERMS
    limit = rules.terms("shop", HOST).host
    assert limit is not None
    assert rules.hours(HOST) == Terms(host=HostLimit(HOST, windows=limit.windows))


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ({}, "hosts.cdn.example: needs a limit: concurrency, rate, windows or breaker"),
        ({"rate": "1/s", "hours": "1:00-2:00"}, ".hours: unknown key, "),
        ({"windows": "22-06"}, ".windows: '22-06' is not a window: write it as 22:00-06:00"),
        ({"windows": ["mun 1:00-2:00"]}, "mun is no day, did you mean"),
        ({"windows": []}, ".windows: must not be empty; leave it out for all hours"),
        ({"windows": 22}, ".windows: must be text, not 22; put it in quotes"),
        ({"windows": "1:00-2:00", "timezone": "Paris"}, ".timezone: "),
        ({"rate": "1/s", "timezone": "UTC"}, ".timezone: belongs to windows, and there are none"),
        ({"timezone": "UTC"}, ".timezone: belongs to windows, and there are none"),
        ({"breaker": "on"}, ".breaker: must be off, or a mapping, not 'on'"),
        ({"breaker": {"ratios": 1}}, ".breaker.ratios: unknown key, did you mean 'ratio'?"),
        ({"breaker": {"ratio": 2}}, ".breaker.ratio: must be from 0.01 to 1"),
        (
            {"breaker": {"open_for": "5m", "longest": "1m"}},
            ".breaker.longest: must not be shorter than open_for",
        ),
    ],
)
def test_what_can_not_be_meant_is_refused_with_its_line(
    tmp_path: Path, host: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(tmp_path, {HOST: host})
    assert told in str(refused.value)
    found = re.search(r"penstock\.yaml:(\d+): hosts\.cdn\.example", str(refused.value))
    assert found is not None
    # Each key has a line of its own, and the host has the third.
    assert int(found[1]) == 3 if not host else 4 <= int(found[1]) <= 6


def test_changes_reach_the_numbers_of_a_hosts_breaker(tmp_path: Path) -> None:
    changes = [f"hosts.{HOST}.breaker.ratio=0.3", f"hosts.{HOST}.windows=1:00-2:00"]
    found = settings(tmp_path, {HOST: {"rate": "1/s"}}, *changes).hosts[HOST]
    assert found.breaker == BreakerSettings(ratio=0.3)
    assert (found.windows, found.rate_per_s) == ((parse_window("1:00-2:00"),), 1.0)


# As requests ask for them.


def a_want(*, opens: str, rate_per_s: float | None = None) -> RateRequest:
    hours = OpeningHours((parse_window(opens),))
    return RateRequest("shop", None, HOST, terms=Terms(host=HostLimit(HOST, 1, rate_per_s, hours)))


def test_request_outside_of_its_hosts_hours_is_told_when_they_begin_and_takes_nothing() -> None:
    book = Book({})
    [verdict] = admit([a_want(opens="08:20-09:00", rate_per_s=1.0)], book, EPOCH + 5)
    reason = "cdn.example is outside of its hours (hosts.cdn.example.windows)"
    assert verdict == RateDecision(OPENS_S - 5, "window", reason)
    assert (book.given, book.held) == ({}, {})
    assert [v.gate for v in admit([a_want(opens="08:20-09:00")], book, EPOCH + OPENS_S)] == [""]


def test_hours_are_asked_before_a_place_is_waited_for() -> None:
    """A request that would wait in line for a place has no place to wait for."""
    book = Book({}, held={f"host:{HOST}": 1.0})
    assert [v.gate for v in admit([a_want(opens="08:20-09:00")], book, EPOCH)] == ["window"]
    assert [v.gate for v in admit([a_want(opens="08:00-09:00")], book, EPOCH)] == ["slots"]


def test_who_would_go_out_after_the_hours_have_ended_is_given_no_place() -> None:
    want = a_want(opens="08:00-08:01", rate_per_s=0.5)
    book = Book({f"host:{HOST}": EPOCH + 60.0})
    [verdict] = admit([want], book, EPOCH + 57)
    assert (verdict.gate, verdict.wait_s) == ("window", 86_400.0 - 57)
    assert book.next_at == {f"host:{HOST}": EPOCH + 60.0}
    book.next_at[f"host:{HOST}"] = EPOCH + 59.0
    assert [(v.gate, v.wait_s) for v in admit([want], book, EPOCH + 57)] == [("", 2.0)]


def test_equal_hours_have_one_definition_and_others_another() -> None:
    day, night = parse_window("08:00-18:00"), parse_window("sat 22:00-23:00")
    told = [
        hours_definitions({HOST: OpeningHours(*about)})[HOST]
        for about in (
            ((day, night), "UTC"),
            ((night, day), "UTC"),
            ((day,), "UTC"),
            ((day, night), "Europe/Paris"),
            ((day, parse_window("sun 22:00-23:00")), "UTC"),
        )
    ]
    assert told[0] == told[1]
    assert len(set(told)) == 4


def test_job_that_meets_them_waits_until_then_and_loses_nothing() -> None:
    error = HostOutside(HOST, 1200.0, "https://cdn.example/1?token=secret")
    reason = "cdn.example is outside of its hours (hosts.cdn.example.windows)"
    assert outcome_of(error) == Snoozed(1200.0, reason, outside=HOST, is_cut=True)
    # And as a child process meets it.
    again = error_from(refusal_of(1, error))
    assert isinstance(again, HostOutside)
    assert outcome_of(again) == Snoozed(1200.0, reason, outside=HOST, is_cut=True)


# The breaker of a host as a worker counts for it.

WELL, BAD = Sent(True, 1, 0.1), Sent(False, 0, 0.1, "connection refused")


def told(rule: BreakerSettings | None, *, is_open: bool = False) -> HostTold | None:
    """What is said of a host after a good request, and a bad one 90 s later."""
    watch = HostWatch({HOST: rule})
    if is_open:
        watch.learn({HOST: ("open", 0.0)})
    want = RateRequest("shop", None, HOST)
    watch.note(want, WELL, 1000.0)
    assert watch.note(want, BAD, 1090.0) is (rule is not None or is_open)
    return watch.take(1090.0).get(HOST)


def test_what_went_well_is_remembered_for_the_window_of_the_host() -> None:
    usual, long = told(HOST_RULE), told(BreakerSettings(window_s=600.0))
    assert usual is not None
    assert long is not None
    assert (usual.well, usual.failed, usual.rule) == ([], 1, HOST_RULE)
    assert (long.well, long.failed, long.rule.window_s) == ([(90.0, 1)], 1, 600.0)


def test_breaker_of_a_host_that_is_off_is_told_nothing_unless_somebody_opened_it() -> None:
    assert told(None) is None
    by_hand = told(None, is_open=True)
    assert by_hand is not None
    assert (by_hand.failed, by_hand.rule) == (1, HOST_RULE)


# As everybody keeps them, on virtual time.

MODULE = "host_hours_pipelines"
PIPELINES = catalogue.PIPELINES


def a_source(host: str, pages: int, **more: object) -> dict[str, object]:
    params = {"host": host, "pages": pages}
    return {"pipeline": f"{MODULE}:catalogue", "params": params, **more}


def a_project(folder: Path, hosts: Any, sources: dict[str, Any]) -> Project:
    folder.mkdir(exist_ok=True)
    text = json.dumps({"hosts": hosts, "sources": sources})
    (folder / "penstock.yaml").write_text(text)
    return Project.load(folder)


@dataclass
class Web:
    """Writes down who was asked for what, and when; some of it is away."""

    clock: VirtualClock
    away: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    seen: list[tuple[str, str, float]] = field(default_factory=list)

    async def answer(self, request: Request) -> RawResponse:
        host, _, path = request.url.removeprefix("https://").partition("/")
        self.seen.append((host, path, self.clock.monotonic()))
        if path == "robots.txt" and host in self.moved:
            return RawResponse(302, {"location": f"https://{HOST}/{host}/robots.txt"}, b"")
        if path.endswith("robots.txt"):
            return RawResponse(200, {}, b"User-agent: *\nAllow: /\n")
        if host in self.away:
            raise FetchError("connection refused", request.url)
        return RawResponse(200, {"content-type": "text/plain"}, b"hello")

    def times(self, host: str) -> list[float]:
        return [at for name, _, at in self.seen if name == host]


def test_nothing_goes_to_a_host_outside_of_its_hours_whoever_shares_it(tmp_path: Path) -> None:
    """Two sources on two workers, robots.txt and all; a third source is none of its business."""
    names = {"one.org": HOST, "two.org": HOST, "three.org": "other.example"}
    sources = {name: a_source(host, 30) for name, host in names.items()}
    folder, clock = tmp_path / "p", VirtualClock()
    web = Web(clock)
    first, second = (a_project(folder, {HOST: TWENTY_PAST}, sources) for _ in range(2))
    with (
        closing(first),
        closing(second),
        Simulation(first, ScriptedNetwork(web.answer), seed=1, clock=clock) as here,
        Simulation(second, ScriptedNetwork(web.answer), seed=2, clock=clock) as there,
    ):
        runs = [first.run(name, actor="test") for name in names]
        run_together(clock, here, there)
        for run_id in runs:
            run = first.require_run(run_id)
            assert (run.state, run.pages_done, run.retried) == ("completed", 30, 0)
            jobs = first.connection.jobs.find(JobFilter(run_id=run_id, limit=100))
            assert {(job.state, job.tries) for job in jobs} == {(JobState.SUCCEEDED, 0)}
            assert max(job.attempt for job in jobs) <= 2, "one that found it shut, one that did not"
        put_off = [each for each in journal(first) if each.kind == "job.snoozed"]

    assert OPENS_S <= min(web.times(HOST)) < OPENS_S + 5
    assert max(web.times("other.example")) < 60
    assert [path for host, path, _ in web.seen if host == HOST].count("robots.txt") <= 2
    assert Counter(each.source for each in put_off) == {"one.org": 30, "two.org": 30}
    reason = "cdn.example is outside of its hours (hosts.cdn.example.windows) (again in "
    assert all(each.detail.startswith(reason) for each in put_off)


def test_hours_that_begin_earlier_by_a_new_configuration_hold_for_jobs_that_wait_already(
    tmp_path: Path,
) -> None:
    sources = {"one.org": a_source(HOST, 5)}
    folder, clock = tmp_path / "p", VirtualClock()
    web = Web(clock)
    with (
        closing(a_project(folder, {HOST: TWENTY_PAST}, sources)) as project,
        Simulation(project, ScriptedNetwork(web.answer), seed=1, clock=clock) as simulation,
    ):
        run_id = lead(project, clock).run("one.org", actor="test")
        simulation.run(for_s=60.0)
        assert web.times(HOST) == []
        lead(project, clock)
        assert project.require_run(run_id).waiting == 5, "nothing has changed"

    sooner = {**TWENTY_PAST, "windows": ["09:05-10:00"]}
    with (
        closing(a_project(folder, {HOST: sooner}, sources)) as project,
        Simulation(project, ScriptedNetwork(web.answer), seed=2, clock=clock) as simulation,
    ):
        lead(project, clock)
        simulation.run()
        run = project.require_run(run_id)
        assert (run.state, run.pages_done, run.retried) == ("completed", 5, 0)
    assert 300 <= min(web.times(HOST)) <= max(web.times(HOST)) < 360


def lead(project: Project, clock: VirtualClock) -> Project:
    """What whoever leads does first."""
    project.clock = clock
    clockwork = LeaderLoop(project, project.open_store(), "test", has_scheduler=False)
    clockwork.look()
    clockwork.close()
    return project


@pytest.mark.parametrize("limits", [TWENTY_PAST, {"rate": "2/m"}])
def test_robots_txt_that_moved_to_such_a_host_waits_for_its_gates_and_costs_no_try(
    tmp_path: Path, limits: dict[str, Any]
) -> None:
    """Three shops have their robots.txt on one host."""
    names = ("one.org", "two.org", "three.org")
    sources = {name: a_source(name, 10) for name in names}
    project, clock = a_project(tmp_path / "p", {HOST: limits}, sources), VirtualClock()
    web = Web(clock, moved=frozenset(names))
    with Simulation(project, ScriptedNetwork(web.answer), seed=1, clock=clock) as simulation:
        runs = [project.run(name, actor="test") for name in names]
        simulation.run()
        for run_id in runs:
            run = project.require_run(run_id)
            assert (run.state, run.pages_done, run.retried) == ("completed", 10, 0)
            jobs = project.connection.jobs.find(JobFilter(run_id=run_id, limit=100))
            assert {job.tries for job in jobs} == {0}
        project.close()
    times = web.times(HOST)
    assert len(times) == 3
    if limits == TWENTY_PAST:
        assert OPENS_S <= min(times) < OPENS_S + 5
    else:
        assert all(later - sooner >= 30 for sooner, later in itertools.pairwise(times))
    at_home = [path for host, path, _ in web.seen if host != HOST].count("robots.txt")
    assert at_home <= 60, "and not once for each page and look"


def test_host_that_is_slower_than_its_jobs_have_time_costs_no_try(tmp_path: Path) -> None:
    """Eight pages in four minutes, and each step has thirty seconds."""
    sources = {"one.org": a_source(HOST, 8, fetch={"robots": False})}
    project, clock = a_project(tmp_path / "p", {HOST: {"rate": "2/m"}}, sources), VirtualClock()
    web = Web(clock)
    with Simulation(project, ScriptedNetwork(web.answer), seed=1, clock=clock) as simulation:
        run_id = project.run("one.org", actor="test")
        simulation.run()
        run = project.require_run(run_id)
        assert (run.state, run.pages_done, run.retried) == ("completed", 8, 0)
        project.close()
    times = web.times(HOST)
    assert all(later - sooner >= 30 for sooner, later in itertools.pairwise(times))
    assert times[-1] < 8 * 40, "and nothing of its rate is left unused for long"


def test_what_does_not_fit_into_the_hours_goes_on_when_they_begin_again(tmp_path: Path) -> None:
    host = {"windows": ["08:20-08:21", "08:24-08:25"], "rate": "15/m"}
    sources = {"one.org": a_source(HOST, 20, fetch={"robots": False})}
    project, clock = a_project(tmp_path / "p", {HOST: host}, sources), VirtualClock()
    web = Web(clock)
    with Simulation(project, ScriptedNetwork(web.answer), seed=1, clock=clock) as simulation:
        run_id = project.run("one.org", actor="test")
        simulation.run()
        assert project.require_run(run_id).state == "completed"
        project.close()
    times = web.times(HOST)
    assert len(times) == 20
    assert {int(at // 60) for at in times} == {20, 24}


@pytest.mark.parametrize(("breaker", "most"), [({"at_least": 3}, 8), ("off", None)])
def test_breaker_of_a_host_has_the_numbers_of_that_host(
    tmp_path: Path, breaker: Any, most: int | None
) -> None:
    """The sources that share it have none of their own here: what stops them is the host's."""
    numbers = breaker if breaker == "off" else {**breaker, "open_for": "1h"}
    own = {"at_least": 1000}
    sources = {f"{n}.org": a_source(HOST, 10, breaker=own) for n in ("one", "two")}
    project = a_project(tmp_path / "p", {HOST: {"breaker": numbers}}, sources)
    clock = VirtualClock()
    web = Web(clock, away=frozenset({HOST}))
    with Simulation(project, ScriptedNetwork(web.answer), seed=1, clock=clock) as simulation:
        runs = [project.run(name, actor="test") for name in sources]
        simulation.run(600)
        breakers = {
            row.name: row for row in project.connection.breakers.all() if row.kind == "host"
        }
        lost = sum(project.require_run(run_id).quarantined for run_id in runs)
        project.close()
    asked = [path for _, path, _ in web.seen if path != "robots.txt"]
    if most is None:
        assert breakers == {}
        assert lost == 20, "nothing spares them their tries"
    else:
        assert breakers[HOST].state == "open"
        assert breakers[HOST].opens_at - breakers[HOST].since >= 3600
        assert 3 <= len(asked) <= most
