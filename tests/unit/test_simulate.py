"""The simulation says what the engine would do: its figures against real runs on virtual time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.cli.entry import main
from penstock.engine.scheduler import Scheduler
from penstock.engine.simulation import Beginning, simulate
from penstock.engine.simulation.assumptions import read_assumptions
from penstock.engine.simulation.beginning import read_beginning
from penstock.engine.simulation.figures import Figures
from penstock.engine.simulation.samples import Past, Sample
from penstock.errors import UsageError
from penstock.gates.budget import next_reset
from penstock.gates.terms import rules_of
from penstock.project import Project
from penstock.settings import load_settings
from penstock.sources.network import RawResponse, Request
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal

pytestmark = pytest.mark.usefixtures("pipelines")

MODULE = "forecast_pipelines"
PIPELINES = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    await ctx.fetch(f"https://{ctx.source.key}/index")
    for number in range(ctx.params["pages"]):
        yield {"n": number}


@pages.step(after="discover", unit="page", key="n")
async def extract(page, ctx):
    response = await ctx.fetch(f"https://{ctx.source.key}/{page['n']}")
    yield {"n": page["n"], "text": response.text}


@pages.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=f"{ctx.source.key}/{page['n']}", data=page)
"""
# A Monday, at midnight UTC.
MONDAY = 1_799_625_600.0 - 1_799_625_600.0 % 86_400
DAY_S = 86_400.0


def a_source(pages: int, **more: Any) -> dict[str, Any]:
    fetch = {"robots": False, "timeout": "10s"}
    return {"pipeline": f"{MODULE}:pages", "params": {"pages": pages}, "fetch": fetch, **more}


def write(folder: Path, config: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "penstock.yaml").write_text(json.dumps({"project": "foretold", **config}))
    return folder


class Real:
    """The engine itself for some days: the scheduler when something is due, a worker until all has ended."""

    def __init__(self, folder: Path, seconds: float = 1.0) -> None:
        self.clock = VirtualClock(MONDAY)
        self.seconds = seconds
        self.requests: list[float] = []
        self.project = Project.load(folder)
        self.project.clock = self.clock
        self.network = ScriptedNetwork(self.answer)

    async def answer(self, request: Request) -> RawResponse:
        self.requests.append(self.clock.now())
        await asyncio.sleep(self.seconds)
        return RawResponse(200, {"content-type": "text/plain"}, b"x" * 100)

    def run(self, days: float) -> None:
        project, clock = self.project, self.clock
        scheduler = Scheduler(project, project.store)
        scheduler.plan()
        bounds = rules_of(project.settings).lasting()
        ends_at = MONDAY + days * DAY_S
        with Simulation(project, self.network, seed=1, clock=clock) as simulation:
            while clock.now() < ends_at:
                due = scheduler.tick()
                if simulation.upkeep() or project.store.overview().active_runs:
                    # Until something else is due; with an end of its own, so that ticks find it at work.
                    simulation.run(for_s=max(0.001, min(due or ends_at, ends_at) - clock.now()))
                later = [due or ends_at, next_reset(bounds, clock.now()), ends_at]
                clock.advance(max(0.0, min(later) - clock.now()))

    def count(self, kind: str) -> int:
        return sum(event.kind == kind for event in journal(self.project))

    def days_of(self, kind: str) -> list[int]:
        at = [event.at for event in journal(self.project) if event.kind == kind]
        return sorted({int((moment - MONDAY) // DAY_S) for moment in at})

    def starts(self) -> int:
        return len(self.project.store.runs(limit=1000))


def foretell(folder: Path, days: float, assumed: Sample, seed: int = 1) -> Figures:
    settings = load_settings(folder)
    past = {key: Past((assumed,), True) for key in settings.sources}
    return simulate(settings, Beginning(MONDAY, past), days, seed)


def exhausted_on(figures: Figures) -> list[int]:
    at = [moment for budget in figures.budgets for moment in budget.exhausted_at]
    return sorted({int((moment - MONDAY) // DAY_S) for moment in at})


SIMPLE = Sample(pages=10, requests=1.0, seconds=1.0, failures=0.0)


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


def test_ticks_that_find_the_run_before_still_at_work_are_skipped_as_often(tmp_path: Path) -> None:
    # 13 requests, one every 12 seconds: longer than the two minutes between ticks.
    limits = {"rate": "5/m"}
    source = a_source(12, schedule={"every": "2m"}, limits=limits)
    folder = write(tmp_path / "project", {"sources": {"slow.test": source}})
    real = Real(folder)
    real.run(1 / 12)
    told = foretell(folder, 1 / 12, Sample(pages=12, seconds=1.0, failures=0.0))

    skipped = real.count("schedule.skipped")
    assert skipped > 20
    assert abs(told.skipped - skipped) <= 0.05 * skipped
    assert abs(told.starts - real.starts()) <= 0.05 * real.starts()
    assert abs(told.requests - len(real.requests)) <= 0.05 * len(real.requests)
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
    source = a_source(1000, schedule={"every": "1h"})
    sources = {f"s{number}.test": source for number in range(8)}
    folder = write(tmp_path / "project", {"worker": {"slots": 2}, "sources": sources})
    told = foretell(folder, 1, Sample(pages=1000, seconds=2.0, failures=0.0))

    # Two slots have 2 x 86,400 s for jobs of 2 s each; they begin after an hour.
    assert told.requests == pytest.approx(2 * 82_800 / 2, rel=0.03)
    assert told.worker_use == pytest.approx(23 / 24, rel=0.02)
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
    told = simulate(settings, Beginning(MONDAY, past), 60, 1)
    still, busy = told.sources
    assert (still.cadence, busy.cadence) == ("low", "high")
    assert busy.starts > 4 * still.starts
    assert still.moves[0].startswith("low: 3 runs in a row")


def test_assumptions_are_read_and_wrong_ones_named(tmp_path: Path) -> None:
    by_files = {"watch": "./inbox/*.json"}
    sources = {
        "asked.test": a_source(1, schedule={"signal": "prices.stale"}),
        "inbox": a_source(1, schedule=[{"every": "1d"}, {"name": "files", **by_files}]),
        "timed.test": a_source(1, schedule={"every": "1d"}),
    }
    settings = load_settings(write(tmp_path / "project", {"sources": sources}))
    found = read_assumptions(
        ["pages=5, failures=0.5", "WWW.asked.test.signals=3/d,inbox.files=1/h"], settings
    )
    assert found.sample == Sample(pages=5, failures=0.5)
    assert found.coming_per_s == {
        ("asked.test", "signals"): 3 / DAY_S,
        ("inbox", "files"): 1 / 3600,
    }
    for wrong, said in (
        ("pags=5", "did you mean 'pages'"),
        ("pages", "from 0 to"),
        ("pages=x", "from 0 to"),
        ("failures=2", "from 0 to 1"),
        ("pages=-1", "from 0 to"),
        ("pages=nan", "from 0 to"),
        ("", "what is to be what"),
        ("askt.test.signals=3/d", "did you mean 'asked.test'"),
        ("asked.test.signal=3/d", "did you mean 'signals'"),
        ("asked.test.files=3/d", "asked.test.signals"),
        ("timed.test.signals=3/d", "by time"),
        ("asked.test.signals=often", "3/d"),
        ("asked.test.signals=5/s", "one a minute"),
    ):
        with pytest.raises(UsageError) as error:
            read_assumptions([wrong], settings)
        assert said.replace("3/d", "5000/d") in f"{error.value.message} {error.value.hint}", wrong


# The command.


def test_both_sides_are_shown_and_the_page_needs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "<script>alert(1)</script>"
    source = a_source(5, schedule={"every": "6h"}, budget={"requests": "10/d"})
    folder = write(tmp_path / "project", {"sources": {"shop.test": source}})
    page = tmp_path / "plan.html"
    words = ["simulate", "--project", str(folder), "--days", "3", "--html", str(page)]
    changes = ["--set", "shop.test.schedule.cadence=daily", "--set", f"shop.test.params.x={evil}"]
    assert main([*words, *changes]) == 0

    out = capsys.readouterr().out
    starts = next(line for line in out.splitlines() if line.startswith("starts"))
    assert starts.split()[1:] == ["12", "3"] or starts.split()[1:] == ["11", "3"]
    text = page.read_text()
    assert text.count("<svg") >= 4
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http://" not in text
    assert "https://" not in text
    assert not (folder / "penstock.db").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("shop.test.schedule.cadence=dayly", "did you mean 'daily'"),
        ("shop.test.shedule.every=6h", "unknown key, did you mean 'schedule'"),
        ("shap.test.schedule.every=6h", "did you mean 'shop.test'"),
        ("shop.test.schedule.every", "does not say what is to be what"),
        ("shop.test.schedule.every=0s", "every"),
    ],
)
def test_wrong_changes_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, said: str
) -> None:
    source = a_source(5, schedule={"cron": "0 2 * * *", "timezone": "Europe/Paris"})
    folder = write(tmp_path / "project", {"sources": {"shop.test": source}})
    assert main(["simulate", "--project", str(folder), "--set", change]) == 2
    assert said in capsys.readouterr().err


def test_a_change_replaces_the_policy_and_keeps_what_holds_for_any(tmp_path: Path) -> None:
    schedule = {"cron": "0 2 * * *", "timezone": "Europe/Paris", "missed": "skip"}
    listed = [{"every": "6h"}, {"name": "sunday", "cron": "0 2 * * 0"}]
    sources = {"one.test": a_source(1, schedule=schedule), "two.test": a_source(1, schedule=listed)}
    folder = write(tmp_path / "project", {"sources": sources})
    changes = ["ONE.test.schedule.every=6h", "two.test.schedule.sunday.missed=all"]
    settings = load_settings(folder, changes=changes)
    [one] = settings.sources["one.test"].schedules
    assert (one.kind, one.every_s, one.cron, one.missed) == ("every", 21_600, None, "skip")
    assert [each.missed for each in settings.sources["two.test"].schedules] == ["once", "all"]
