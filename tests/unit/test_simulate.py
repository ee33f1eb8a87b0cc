"""The simulation says what the engine would do: its figures against real runs on virtual time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.app.forecast import standing_still
from penstock.cli.commands.simulate import note_words
from penstock.engine.simulation import InitialState, SourceState, simulate
from penstock.engine.simulation.initial_state import read_beginning
from penstock.engine.simulation.samples import Past, Sample
from penstock.gates.breaker import Breaker
from penstock.settings import load_settings
from tests.unit.foretold import (
    DAY_S,
    MODULE,
    MONDAY,
    PIPELINES,
    SIMPLE,
    Real,
    a_source,
    exhausted_on,
    foretell,
    write,
)

__all__ = ["MODULE", "PIPELINES"]
pytestmark = pytest.mark.usefixtures("pipelines")


def test_starts_and_requests_are_those_of_a_real_run(tmp_path: Path) -> None:
    sources = {
        "six.test": a_source(10, schedule={"every": "6h"}),
        "daily.test": a_source(10, schedule={"cadence": "high"}),
        "cron.test": a_source(10, schedule={"cron": "0 2 * * *", "timezone": "Europe/Paris"}),
        "hours.test": a_source(10, schedule={"every": "4h", "windows": "08:00-18:00"}),
    }
    folder = write(tmp_path / "project", {"sources": sources})
    real = Real(folder)
    real.run(3)
    told = foretell(folder, 3, SIMPLE)

    assert told.starts == real.starts() > 20
    assert told.requests == len(real.requests)
    assert told.completed == real.count("run.completed")
    assert told.denied == real.count("schedule.denied") > 0
    real.project.close()


def test_a_budget_is_used_up_on_the_days_on_which_it_really_is(tmp_path: Path) -> None:
    budget = {"requests": "30/d"}
    source = a_source(10, schedule={"every": "6h"}, budget=budget)
    folder = write(tmp_path / "project", {"sources": {"shop.test": source}})
    real = Real(folder)
    real.run(4)
    told = foretell(folder, 4, SIMPLE)

    assert exhausted_on(told) == real.days_of("budget.exhausted") != []
    assert told.requests == len(real.requests)
    assert told.starts == real.starts()
    # Within one run: what is released at midnight may end on either side of the last moment.
    assert abs(told.completed - real.count("run.completed")) <= 1
    real.project.close()


def test_a_budget_that_a_run_uses_to_the_last_request_is_exhausted_by_that_run(
    tmp_path: Path,
) -> None:
    source = a_source(10, schedule={"every": "8h"}, budget={"requests": "10/d"})
    folder = write(tmp_path / "project", {"sources": {"shop.test": source}})
    real = Real(folder)
    real.run(0.5)
    told = foretell(folder, 0.5, SIMPLE)

    [really] = real.project.connection.journal.events(kind="budget.exhausted", limit=10)
    [[foretold]] = [budget.exhausted_at for budget in told.budgets]
    assert (foretold - MONDAY) // 3600 == (really.at - MONDAY) // 3600
    again = simulate(real.project.settings, read_beginning(real.project), 0.1, 1)
    assert [budget.exhausted_at for budget in again.budgets] == [[MONDAY + DAY_S / 2]]
    real.project.close()


def test_ticks_that_find_the_run_before_still_at_work_are_skipped_as_often(tmp_path: Path) -> None:
    # 13 requests, one every 12 seconds: longer than the two minutes between ticks.
    limits = {"rate": "5/m"}
    source = a_source(12, schedule={"every": "2m"}, limits=limits)
    folder = write(tmp_path / "project", {"sources": {"slow.test": source}})
    real = Real(folder)
    real.run(1 / 24)
    told = foretell(folder, 1 / 24, Sample(pages=12, seconds=1.0, failures=0.0))

    skipped = real.count("schedule.skipped")
    assert skipped > 10
    assert abs(told.skipped - skipped) <= 0.05 * skipped
    assert abs(told.starts - real.starts()) <= 0.05 * real.starts()
    assert abs(told.requests - len(real.requests)) <= 0.05 * len(real.requests)
    real.project.close()


def test_chains_and_fan_in_start_as_often_as_they_really_do(tmp_path: Path) -> None:
    # 15 minutes: what comes meanwhile is queued, and each has a run of its own.
    slow: dict[str, Any] = {
        "params": {"pages": 29},
        "limits": {"concurrency": 1, "adaptive": False},
        "fetch": {"robots": False, "timeout": "50s"},
    }
    sources = {
        "prices.test": a_source(3, schedule={"every": "10m"}),
        "stock.test": a_source(3, schedule={"every": "15m"}),
        "joined.test": a_source(3, schedule={"after": ["prices.test", "stock.test"]}),
        "report.test": a_source(3, schedule={"after": "joined.test"}),
        "broken.test": a_source(3, schedule={"every": "15m"}, degrade_after=4),
        "never.test": a_source(3, schedule={"after": "broken.test"}),
        "repair.test": a_source(3, schedule={"signal": "run.failed of broken.test"}),
        "hours.test": a_source(3, schedule={"after": "prices.test", "windows": "01:00-02:00"}),
        "slow.test": a_source(3, schedule={"after": "prices.test"}) | slow,
        "hasty.test": a_source(3, schedule={"after": "prices.test", "overlap": "skip"}) | slow,
    }
    folder = write(tmp_path / "project", {"sources": sources})
    real = Real(
        folder, look_s=15.0, slower={"slow.test": 30.0, "hasty.test": 30.0}, broken={"broken.test"}
    )
    real.run(0.125)
    simple = Sample(pages=3, seconds=1.0, failures=0.0)
    broken, slow_one = replace(simple, failures=1.0), replace(simple, pages=29, seconds=30.0)
    told = foretell(folder, 0.125, simple, broken=broken, slow=slow_one, hasty=slow_one)

    starts = {each.source.partition(".")[0]: each.starts for each in told.sources}
    seen = {key.partition(".")[0]: real.starts_by_source().get(key, 0) for key in sources}
    for name in ("slow", "hasty"):
        assert starts.pop(name) == pytest.approx(seen.pop(name), abs=1)
    assert starts == seen
    assert starts["joined"] == starts["report"] > 5
    assert starts["repair"] == 4, "a probe of a degraded source raises nothing"
    assert starts["never"] == 0 < starts["hours"] < starts["prices"]
    assert told.skipped == pytest.approx(real.count("schedule.skipped"), abs=2)
    assert told.skipped > 5
    assert told.left_out == []
    real.project.close()


def test_backlog_budgets_and_promises_are_those_of_a_real_run(tmp_path: Path) -> None:
    sources = {
        f"s{number}.test": a_source(
            60,
            schedule={"every": "2h"},
            freshness="170m",
            deadline="30m",
            budget={"requests": "300/d"},
        )
        | {"fetch": {"robots": False, "timeout": "50s"}}
        for number in range(4)
    }
    config = {"worker": {"slots": 2}, "budget": {"requests": "1000/d"}, "sources": sources}
    folder = write(tmp_path / "project", config)
    real = Real(folder, seconds=20.0, look_s=60.0)
    real.run(2)
    told = foretell(folder, 2, Sample(pages=60, seconds=20.0, failures=0.0))

    assert told.starts == pytest.approx(real.starts(), rel=0.05)
    assert told.requests == pytest.approx(len(real.requests), rel=0.02)
    project = next(each for each in told.budgets if each.scope == "project")
    assert project.by_day == pytest.approx(real.requests_by_day(2), rel=0.02)
    assert exhausted_on(told) == real.days_of("budget.exhausted") == [0, 1]
    assert told.backlog_peak == pytest.approx(real.backlog_peak, rel=0.1)
    assert told.freshness_breaches == pytest.approx(real.breaches("freshness"), abs=1)
    assert told.deadline_breaches == pytest.approx(real.breaches("deadline"), abs=1)
    assert min(real.breaches("freshness"), real.breaches("deadline")) >= 4
    busy_s = len(real.requests) * 20.0
    assert told.worker_use == pytest.approx(busy_s / (2 * 2 * DAY_S), rel=0.05)
    real.project.close()


def test_broken_promises_start_as_many_runs_as_they_really_do(tmp_path: Path) -> None:
    # Three requests one after the other: 90 s.
    slow: dict[str, Any] = {
        "deadline": "1m",
        "limits": {"concurrency": 1, "adaptive": False},
        "fetch": {"robots": False, "timeout": "50s"},
    }
    broken = {"name": "broken", "signal": "sla.breached"}
    sources = {
        "stale.test": a_source(2, schedule={"every": "6h"}, freshness="2h"),
        "late.test": a_source(2, schedule={"every": "3h"}) | slow,
        "again.test": a_source(2, schedule=[{"every": "12h"}, broken], freshness="3h"),
        "twice.test": a_source(2, schedule=[{"every": "4h"}, broken]) | slow,
        "repair.test": a_source(2, schedule={"signal": "sla.breached of stale.test"}),
        "praise.test": a_source(2, schedule={"signal": "sla.restored of stale.test"}),
        "nudge.test": a_source(2, schedule={"signal": "sla.breached of late.test"}),
        "calm.test": a_source(2, schedule={"signal": "sla.restored of late.test"}),
    }
    folder = write(tmp_path / "project", {"sources": sources})
    slower = {"late.test": 30.0, "twice.test": 30.0}
    real = Real(folder, slower=slower)
    real.run(1)
    simple = Sample(pages=2, seconds=1.0, failures=0.0)
    slow_one = replace(simple, seconds=30.0)
    told = foretell(folder, 1, simple, late=slow_one, twice=slow_one)

    starts = {each.source: each.starts for each in told.sources}
    assert starts == {key: real.starts_by_source().get(key, 0) for key in sources}
    assert (starts["repair.test"], starts["praise.test"], starts["nudge.test"]) == (4, 3, 7)
    assert starts["again.test"] > 4
    assert starts["twice.test"] == 10, "one that was started by it is not followed by another"
    assert told.freshness_breaches == real.breaches("freshness")
    assert told.deadline_breaches == real.breaches("deadline")
    assert told.left_out == []
    real.project.close()


def test_hours_and_limits_of_a_host_hold_for_all_who_ask_it_as_they_really_do(
    tmp_path: Path,
) -> None:
    """One of them takes longer than its hours last, and goes on in the next ones."""
    on_api = {"site": "https://api.test/v1"}
    api = {"windows": ["06:00-08:00", "13:00-14:00"], "timezone": "Europe/Paris", "rate": "6/m"}
    sources = {
        "one.test": a_source(40, schedule={"every": "3h"}, deadline="90m"),
        "two.test": a_source(700, schedule={"every": "6h"}),
        "api.test": a_source(10, schedule={"every": "6h"}),
        "free.test": a_source(10, schedule={"every": "3h"}, deadline="90m"),
    }
    for key in ("one.test", "two.test"):
        sources[key]["params"] |= on_api
    folder = write(tmp_path / "project", {"hosts": {"api.test": api}, "sources": sources})
    real = Real(folder, look_s=60.0)
    real.run(1)
    one, two = replace(SIMPLE, pages=40), replace(SIMPLE, pages=700)
    told = foretell(folder, 1, SIMPLE, one=one, two=two)

    starts = {each.source: each.starts for each in told.sources}
    assert starts == pytest.approx(real.starts_by_source(), abs=1)
    assert told.skipped == pytest.approx(real.count("schedule.skipped"), abs=2)
    assert told.completed == pytest.approx(real.count("run.completed"), abs=1)
    assert told.deadline_breaches == pytest.approx(real.breaches("deadline"), abs=1)
    assert told.requests == pytest.approx(len(real.requests), rel=0.03)
    hours = Counter(int((at - MONDAY) // 3600) for at in real.requests)
    assert sorted(hour for hour in hours if hours[hour] > 30) == [5, 6, 12]
    assert (told.sources[3].skipped, told.sources[3].deadline_breaches) == (0, 0)
    assert min(told.sources[0].skipped, told.deadline_breaches) > 1
    assert told.left_out == []
    # Whose addresses nobody knows is not held back, and that is said.
    for key in ("one.test", "two.test"):
        del sources[key]["params"]["site"]
    apart = foretell(write(folder, {"hosts": {"api.test": api}, "sources": sources}), 1, SIMPLE)
    assert [each.sources for each in apart.hosts] == [["api.test"]]
    real.project.close()


def test_breaker_of_a_host_holds_back_all_who_ask_it_as_it_really_does(tmp_path: Path) -> None:
    breaker = {"at_least": 5, "open_for": "1h", "longest": "4h"}
    more: dict[str, Any] = {"breaker": {"at_least": 1000}, "degrade_after": 100}
    sources = {
        f"{name}.test": a_source(20, schedule={"every": "2h"}, **more)
        for name in ("one", "two", "three")
    }
    for each in sources.values():
        each["params"]["site"] = "https://gone.test"
    folder = write(
        tmp_path / "project", {"hosts": {"gone.test": {"breaker": breaker}}, "sources": sources}
    )
    real = Real(folder, look_s=60.0, away={"gone.test"})
    real.run(1)
    told = foretell(folder, 1, replace(SIMPLE, pages=20, failures=1.0))
    [host] = told.hosts
    assert (host.host, host.sources) == ("gone.test", list(sources))
    assert host.trips == real.count("breaker.opened") > 4
    assert told.starts == real.starts()
    assert told.skipped == pytest.approx(real.count("schedule.skipped"), abs=1)
    assert told.failed == pytest.approx(real.count("run.failed"), abs=1)
    # Without it each would try its pages three times every two hours.
    assert told.requests == pytest.approx(len(real.requests), abs=3)
    assert told.requests < 30
    real.project.close()


def test_a_host_that_is_away_now_closes_the_breakers_of_who_asks_it_for_as_long(
    tmp_path: Path,
) -> None:
    """Its jobs are turned away and lose nothing; when it is back, that is told as the end of an outage."""
    source = a_source(20) | {"params": {"pages": 20, "site": "https://gone.test"}}
    sources = {
        "one.test": source,
        "told.test": a_source(3, schedule={"signal": "breaker.closed of one.test"}),
    }
    hosts = {"gone.test": {"breaker": {"open_for": "2h"}}}
    folder = write(tmp_path / "project", {"hosts": hosts, "sources": sources})
    away = Breaker("open", MONDAY, MONDAY + 3600, MONDAY, trips=1)
    past = dict.fromkeys(sources, Past((SIMPLE,), True))
    present = {"one.test": SourceState(backlog=20)}
    beginning = InitialState(MONDAY, past, present, hosts={"gone.test": away})
    settings = load_settings(folder)

    [one, told] = simulate(settings, beginning, 59 / 1440, 1).sources
    assert (one.requests, told.starts) == (0, 0)
    [one, told] = simulate(settings, beginning, 70 / 1440, 1).sources
    assert (one.requests, one.completed, one.trips, told.starts) == (20, 1, 0, 1)
    [one, told] = simulate(settings, replace(beginning, hosts={}), 70 / 1440, 1).sources
    assert (one.requests, told.starts) == (20, 0)


def test_scarce_slots_are_shared_by_weight_as_they_really_are(tmp_path: Path) -> None:
    """By jobs, and not by how long a run is: a short one beside long ones has its turn as often."""
    weights = {"heavy.test": 3.0, "light.test": 1.0, "half.test": 0.5, "short.test": 1.0}
    pages = {key: 30 if key == "short.test" else 3000 for key in weights}
    sources = {
        key: a_source(pages[key], weight=weight, schedule={"every": "10m"})
        | {"fetch": {"robots": False, "timeout": "50s"}}
        for key, weight in weights.items()
    }
    folder = write(tmp_path / "project", {"worker": {"slots": 2}, "sources": sources})
    real = Real(folder, seconds=5.0, look_s=60.0)
    real.run(0.1)
    long = Sample(pages=3000, seconds=5.0, failures=0.0)
    told = foretell(folder, 0.1, long, short=replace(long, pages=30))

    asked = {each.source: each.requests for each in told.sources}
    assert asked == pytest.approx(dict(real.requests_by_host), rel=0.12)
    assert asked["heavy.test"] > 2.5 * asked["light.test"] > 4 * asked["half.test"]
    starts = {each.source: each.starts for each in told.sources}
    assert starts == pytest.approx(real.starts_by_source(), abs=1)
    assert starts["short.test"] > 5
    real.project.close()


def test_what_nobody_was_there_for_is_missed_as_it_really_is(tmp_path: Path) -> None:
    sources = {
        f"{missed}.test": a_source(3, schedule={"every": "1h", "missed": missed})
        for missed in ("once", "skip", "all")
    }
    folder = write(tmp_path / "project", {"sources": sources})
    real = Real(folder)
    real.run(0.25)
    real.clock.advance(0.5 * DAY_S)
    before = real.starts_by_source()
    told = simulate(real.project.settings, read_beginning(real.project), 0.5, 1)
    real.run(0.5)

    seen = real.starts_by_source()
    for each in told.sources:
        assert each.missed == real.missed(each.source), each.source
        assert each.starts == seen[each.source] - before[each.source], each.source
    assert told.missed > 20
    real.project.close()


def test_what_stands_still_now_does_so_to_the_end(tmp_path: Path) -> None:
    """Ticks go on: the first one's run waits at the gate, further ones find that it has not ended."""
    source = a_source(3, schedule={"every": "1h"}, freshness="2h")
    keys = ("held.test", "paused.test", "free.test")
    waiter = a_source(3, schedule={"signal": "sla.breached of held.test"})
    sources = {**dict.fromkeys(keys, source), "told.test": waiter}
    folder = write(tmp_path / "project", {"sources": sources})
    real = Real(folder)
    real.run(0.25)
    real.project.hold("held.test")
    real.project.pause("paused.test")
    before = real.starts_by_source()
    beginning = read_beginning(real.project)
    told = simulate(real.project.settings, beginning, 0.25, 1)
    real.run(0.25)

    seen = real.starts_by_source()
    starts = {each.source: each.starts for each in told.sources}
    assert starts == {key: seen[key] - before.get(key, 0) for key in (*keys, "told.test")}
    assert starts == {"held.test": 1, "paused.test": 1, "free.test": 6, "told.test": 1}
    assert told.skipped == real.count("schedule.skipped") > 8
    assert [note_words(note) for note in standing_still(beginning)] == [
        "held.test is held now, and taken to be held to the end: penstock unhold held.test",
        "paused.test is paused now, and taken to be paused to the end: penstock resume paused.test",
    ]
    # By now it is known: nobody is told of it again.
    again = simulate(real.project.settings, read_beginning(real.project), 0.1, 1)
    assert (again.sources[0].freshness_breaches, again.sources[3].starts) == (1, 0)

    real.project.hold()
    beginning = read_beginning(real.project)
    assert standing_still(beginning)[0].text.startswith("everything is held now")
    told = simulate(real.project.settings, beginning, 1, 1)
    assert (told.requests, told.completed) == (0, 0)
    real.project.close()


def test_history_is_what_runs_are_drawn_from_and_nothing_is_written(tmp_path: Path) -> None:
    source = a_source(7, schedule={"every": "6h"})
    folder = write(tmp_path / "project", {"sources": {"shop.test": source}})
    real = Real(folder, seconds=2.0)
    real.run(1)
    before = contents(folder)

    beginning = read_beginning(real.project)
    told = simulate(real.project.settings, beginning, 2, 1)

    [past] = beginning.past.values()
    assert not past.is_assumed
    assert {(each.pages, each.requests, each.failures) for each in past.samples} == {(7, 1.0, 0.0)}
    assert past.samples[0].seconds == pytest.approx(2.0, rel=0.2)
    assert (told.starts, told.requests) == (8, 64)
    real.project.close()
    assert contents(folder) == before


def test_a_run_that_a_budget_stopped_says_what_its_pages_are_like(tmp_path: Path) -> None:
    source = a_source(20, schedule={"every": "6h"}, budget={"requests": "8/d"})
    folder = write(tmp_path / "project", {"sources": {"shop.test": source}})
    real = Real(folder)
    real.run(0.5)
    past = read_beginning(real.project).past["shop.test"]
    real.project.close()
    assert not past.is_assumed
    [sample] = past.samples
    assert (sample.pages, sample.requests, sample.failures, sample.candidates) == (20, 1, 0, 1)
    assert sample.seconds == pytest.approx(1.0, abs=0.1)


def contents(folder: Path) -> dict[str, list[Any]]:
    import apsw

    connection = apsw.Connection(str(folder / "penstock.db"))
    tables = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")
    ]
    found = {name: list(connection.execute(f'SELECT * FROM "{name}"')) for name in tables}
    connection.close()
    return found


def test_the_same_seed_gives_the_same_figures_and_another_gives_others(tmp_path: Path) -> None:
    source = a_source(50, schedule={"every": "3h"})
    folder = write(tmp_path / "project", {"sources": {"a.test": source, "b.test": source}})
    risky = Sample(pages=50, failures=0.2)
    one, again, other = (foretell(folder, 5, risky, seed) for seed in (1, 1, 2))

    assert msgspec.json.encode(one) == msgspec.json.encode(again)
    assert one.retries != other.retries
    assert one.retries > 0


def test_a_source_that_fails_opens_its_breaker_and_is_degraded_to_probes(tmp_path: Path) -> None:
    source = a_source(50, schedule={"every": "6h"}, freshness="12h")
    folder = write(tmp_path / "project", {"sources": {"gone.test": source}})
    told = foretell(folder, 5, Sample(pages=50, failures=1.0))

    assert told.failed > 3
    assert told.probes >= told.starts - 3 > 0
    assert told.freshness_breaches == 1
    assert told.sources[0].stale_hours == pytest.approx(5 * 24 - 12, abs=1)


def test_a_run_that_takes_longer_than_promised_breaks_its_deadline(tmp_path: Path) -> None:
    source = a_source(100, schedule={"every": "6h"}, deadline="10s", limits={"rate": "1/s"})
    folder = write(tmp_path / "project", {"sources": {"slow.test": source}})
    told = foretell(folder, 1, Sample(pages=100, failures=0.0))
    assert told.deadline_breaches == told.completed == 3


def test_too_few_slots_are_shared_and_what_is_left_is_told_as_backlog(tmp_path: Path) -> None:
    source = a_source(1000, schedule={"every": "2m"})
    sources = {f"s{number}.test": source for number in range(8)}
    folder = write(tmp_path / "project", {"worker": {"slots": 2}, "sources": sources})
    told = foretell(folder, 1, Sample(pages=1000, seconds=2.0, failures=0.0))

    # Two slots have 2 x 86,400 s for jobs of 2 s each; all runs end together, and wait for a tick.
    assert told.requests == pytest.approx(86_400, rel=0.03)
    assert told.worker_use == pytest.approx(1.0, rel=0.03)
    assert told.skipped > 50
    assert told.backlog_at_end > 0
    shares = [each.requests for each in told.sources]
    assert max(shares) < 1.5 * min(shares)


def test_thirty_days_of_two_hundred_sources_take_few_steps(tmp_path: Path) -> None:
    source = a_source(1000, schedule={"cadence": "high"})
    sources = {f"s{number}.test": source for number in range(200)}
    folder = write(tmp_path / "project", {"sources": sources})
    told = foretell(folder, 30, Sample(pages=1000, failures=0.0))
    assert told.starts == 6000
    assert told.requests == 6000 * 1001
    assert told.events < 200_000  # and not one for each of six million pages


def test_cadence_auto_slows_down_a_source_that_never_changes(tmp_path: Path) -> None:
    source = a_source(5, schedule={"cadence": "auto"})
    folder = write(tmp_path / "project", {"sources": {"still.test": source, "busy.test": source}})
    settings = load_settings(folder)
    past = {
        "still.test": Past((Sample(pages=5, failures=0.0, changed=0.0),), True),
        "busy.test": Past((Sample(pages=5, failures=0.0, changed=0.9),), True),
    }
    told = simulate(settings, InitialState(MONDAY, past), 60, 1)
    still, busy = told.sources
    assert (still.cadence, busy.cadence) == ("low", "high")
    assert busy.starts > 4 * still.starts
    assert still.moves[0].startswith("low: 3 runs in a row")
