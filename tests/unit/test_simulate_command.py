"""`penstock simulate` as a person meets it: its words, its page, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import Project
from penstock.cli.entry import main
from penstock.engine.simulation.assumptions import read_assumptions
from penstock.engine.simulation.samples import Sample
from penstock.errors import UsageError
from penstock.settings import load_settings
from tests.unit.foretold import DAY_S, a_source, write


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
        ("pages", "is not NAME=VALUE"),
        ("pages=", "from 0 to 10,000,000"),
        ("pages=x", "from 0 to"),
        ("failures=2", "from 0 to 1"),
        ("pages=-1", "from 0 to"),
        ("pages=nan", "from 0 to"),
        ("", "is not NAME=VALUE"),
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


def test_what_is_not_simulated_is_named_wherever_figures_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = {
        "timed.test": a_source(5, schedule={"every": "6h"}),
        "chained.test": a_source(5, schedule={"after": "timed.test"}),
        "asked.test": a_source(
            5, schedule={"signal": ["quality.zero_yield", "run.failed of timed.test"]}
        ),
        "inbox.test": a_source(5, schedule={"watch": "./inbox/*.json"}),
        "near.test": a_source(5, schedule={"every": "6h", "near": {"window": "1h", "every": "5m"}}),
        "hand.test": a_source(5),
    }
    config = {"hosts": {"api.test": {"rate": "30/m"}}, "sources": sources}
    folder, page = write(tmp_path / "project", config), tmp_path / "plan.html"
    words = ["simulate", "--project", str(folder), "--days", "2", "--html", str(page)]
    expected = [
        "asked.test starts by signal quality.zero_yield: not simulated",
        "inbox.test starts by files ./inbox/*.json: not simulated",
        "near.test looks more often near moments",
        "hand.test is started by hand alone",
        "the limits of api.test are not simulated",
    ]

    assert main(words) == 0
    shown = capsys.readouterr().err
    assert main([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    left_out = [each["words"] for each in answer["now"]["left_out"]]
    assert len(left_out) == len(expected)
    for line, told in zip(expected, left_out, strict=True):
        assert told.startswith(line)
        assert told in answer["notes"]
        assert line in shown
        assert line in page.read_text()

    assumed = ["asked.test.signals=12/d,inbox.test.files=1/h", "near.test.moments=2/d"]
    assert main([*words, "--json", *(f"--assume={each}" for each in assumed)]) == 0
    told = json.loads(capsys.readouterr().out)
    starts = {each["source"]: each["starts"] for each in told["now"]["sources"]}
    before = {each["source"]: each["starts"] for each in answer["now"]["sources"]}
    assert (before["asked.test"], before["inbox.test"]) == (0, 0)
    assert 10 < starts["asked.test"] < 45
    assert 25 < starts["inbox.test"] < 80
    assert starts["near.test"] > before["near.test"] + 20
    assert starts["timed.test"] == before["timed.test"] == starts["chained.test"]
    assert len(told["now"]["left_out"]) == 2
    assert "asked.test: signals assumed to come 12 times a day" in told["notes"]


def test_a_project_in_which_nothing_starts_is_told_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "project", {"sources": {}})
    assert main(["simulate", "--project", str(folder), "--days", "1"]) == 0
    assert "this project has no sources" in capsys.readouterr().err
    write(folder, {"sources": {"shop.test": a_source(5)}})
    assert main(["simulate", "--project", str(folder), "--days", "1"]) == 0
    told = capsys.readouterr().err
    change = "--set shop.test.schedule.every=6h"
    assert f"nothing starts by itself in this time: penstock simulate {change}" in told
    assert "no history of shop.test, whose runs are assumed to have 100 pages of 0.5 s" in told

    assert main(["simulate", "--project", str(folder), "--days", "1", *change.split()]) == 0
    told = capsys.readouterr().err
    assert "by itself" not in told
    assert "now: shop.test is started by hand alone" in told


def test_what_stands_still_and_who_asks_which_host_is_told_with_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = a_source(5, schedule={"every": "6h"}, budget={"requests": "10/d"})
    source["params"]["feeds"] = [{"url": "https://API.test:443/feed?key=x"}, "https://cdn.test/"]
    hosts = {
        "api.test": {"rate": "30/m"},
        "cdn.test": {"rate": "30/m"},
        "far.test": {"rate": "1/s"},
    }
    folder = write(tmp_path / "project", {"hosts": hosts, "sources": {"shop.test": source}})
    assert main(["hold", "--project", str(folder)]) == 0
    capsys.readouterr()
    change = ["--set", "shop.test.budget.requests=20/d"]
    assert main(["simulate", "--project", str(folder), "--days", "1", *change]) == 0
    out, told = capsys.readouterr()
    assert "everything is held now, and is taken to be held to the end: penstock unhold" in told
    assert "api.test is taken to get all requests of shop.test" in told
    assert "shop.test has addresses of cdn.test, too: not simulated" in told
    assert "the limits of far.test are not simulated: no source is named far.test or has" in told
    [budget] = [line for line in out.splitlines() if line.startswith("requests a day of shop.test")]
    assert budget.split()[-10:] == "10: 0% at the most 20: 0% at the most".split()


@pytest.mark.parametrize(
    "wrong",
    [
        ["--days", "0"],
        ["--days", "-1"],
        ["--days", "401"],
        ["--days", "1e9"],
        ["--seed", "x"],
        ["--html", "nowhere/plan.html"],
        ["--assume", "shop.test.signals=3/d"],
    ],
)
def test_wrong_words_are_refused_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str]
) -> None:
    source = a_source(5, schedule={"every": "6h"})
    folder = write(tmp_path / "project", {"sources": {"shop.test": source}})
    assert main(["simulate", "--project", str(folder), *wrong]) == 2
    error = capsys.readouterr().err
    assert error.startswith("penstock: ")
    assert "invalid" not in error


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("shop.test.schedule.cadence=dayly", "did you mean 'daily'"),
        ("shop.test.shedule.every=6h", "unknown key, did you mean 'schedule'"),
        ("shap.test.schedule.every=6h", "did you mean 'shop.test'"),
        ("shop.test.schedule.every", "is not KEY=VALUE"),
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


def test_a_long_simulation_says_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.commands.simulate.TELL_EVERY_S", 0.0)
    source = a_source(5, schedule={"every": "6h"})
    folder = write(tmp_path / "project", {"sources": {"shop.test": source}})

    words = ["--days", "2", "--set", "shop.test.schedule.every=3h", "--json"]
    assert main(["simulate", "--project", str(folder), *words]) == 0

    told = capsys.readouterr()
    assert told.err.splitlines() == [f"simulated {day} of 4 days" for day in (1, 2, 3)]
    assert json.loads(told.out)["now"]["days"] == 2


def test_program_gets_both_sides_of_a_forecast_and_its_notes_as_data(tmp_path: Path) -> None:
    source = a_source(5, schedule={"every": "6h"})
    sources = {"shop.test": source, "hand.test": a_source(5)}
    folder = write(tmp_path / "project", {"sources": sources})
    seen: list[tuple[int, int]] = []
    with Project.open(folder) as project:
        found = project.forecast(
            2, changes=["shop.test.schedule.every=3h"], on_progress=lambda *at: seen.append(at)
        )
        with pytest.raises(UsageError) as refused:
            project.forecast(0)

    assert refused.value.code == "bad_days"
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert found.sides["changed"].starts > found.now.starts > 0
    assert [note.code for note in found.notes] == ["no_history", "one_host", "not_simulated"]
    assert list(found.as_json()) == ["set", "notes", "now", "changed"]
    assert not (folder / "penstock.db").exists()
