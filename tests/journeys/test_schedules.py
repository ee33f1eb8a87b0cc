"""Schedules as an operator sees them: the real command, a week away, a change, and what it says of that."""

from __future__ import annotations

import json
import re
import signal
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.journeys.rig import Rig, until

STEPS = """
from penstock import Pipeline

plain = Pipeline("plain")


@plain.step(unit="run")
async def look(ctx):
    pass
"""
DAY_S = 86_400


def rig_with(folder: Path, sources: dict[str, Any]) -> Rig:
    return Rig(folder, {k: {"pipeline": "steps:plain", **v} for k, v in sources.items()}, STEPS)


def told(rig: Rig, *words: str) -> Any:
    done = rig.penstock(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def said(rig: Rig, *words: str) -> str:
    done = rig.penstock(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def work_until(rig: Rig, condition: Any, what: str) -> None:
    """`penstock up` for as long as it takes."""
    process = rig.start("up")
    until(lambda: rig.database.exists() and condition(), what)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 0, rig.output(process)


def has_ended(rig: Rig, count: int) -> bool:
    """Whether there are so many runs, and none of them is left."""
    runs = rig.store.runs.newest()
    return len(runs) >= count and all(run.is_ended for run in runs)


def set_back(rig: Rig, seconds: float) -> None:
    """As if nobody had looked at the schedules for so long."""
    connection = apsw.Connection(str(rig.database))
    connection.execute(
        "UPDATE schedule SET next_due_at = next_due_at - ?, look_at = look_at - ?",
        (seconds, seconds),
    )
    connection.close()


def test_seven_days_away_are_one_run_and_the_misses_are_listed(tmp_path: Path) -> None:
    with rig_with(tmp_path, {"acme.com": {"schedule": {"cron": "* * * * *"}}}) as rig:
        work_until(rig, lambda: len(rig.store.schedules.all()) == 1, "it is planned")
        set_back(rig, 7 * DAY_S)
        assert "acme.com  overdue for " in said(rig, "status")
        [late] = told(rig, "schedules")
        assert late["overdue_s"] > 6 * DAY_S
        # Seconds before a minute begins, that minute's own tick may come too.
        work_until(rig, lambda: has_ended(rig, 1), "it has made up for them")

        [row] = rig.store.schedules.all()
        ticks = rig.store.schedules.ticks(row.source_id, "main", 20_000)
        outcomes = Counter(tick.outcome for tick in ticks)
        assert outcomes["fired"] == len(rig.store.runs.newest()) <= 2
        assert outcomes["missed"] in (10_079, 10_080)
        explained = said(rig, "schedules", "explain", "acme.com")
        assert f"{outcomes['missed']:,} ticks missed, from " in explained
        assert f"covers {outcomes['missed']:,} missed ticks" in explained
        [seen] = told(rig, "schedules")
        assert (seen["last_outcome"], seen["is_planned"]) == ("fired", True)
        rig.assert_sound()


def test_change_is_shown_before_it_holds_and_told_apart_afterwards(tmp_path: Path) -> None:
    first = {"acme.com": {"schedule": [{"name": "often", "every": "1s", "kind": "incremental"}]}}
    with rig_with(tmp_path, first) as rig:
        assert said(rig, "schedules", "diff").startswith("+ acme.com often: every second")
        work_until(rig, lambda: len(rig.store.runs.newest()) >= 2, "it ran twice")
        assert said(rig, "schedules", "diff").startswith("nothing")
        before = len(rig.store.runs.newest())

    second = {
        "acme.com": {
            "schedule": [
                {"name": "often", "every": "2s", "kind": "incremental"},
                {"name": "weekly", "cron": "0 3 * * 0"},
            ]
        }
    }
    with rig_with(tmp_path, second) as rig:
        changed = told(rig, "schedules", "diff")
        assert [(each["schedule"], each["change"]) for each in changed] == [
            ("often", "changed"),
            ("weekly", "added"),
        ]
        assert changed[0]["keys"] == [{"key": "every", "before": 1.0, "after": 2.0}]
        work_until(rig, lambda: has_ended(rig, before + 1), "it ran again")

        history = told(rig, "schedules", "history", "acme.com")
        assert [(each["schedule"], each["version"]) for each in history] == [
            ("often", 1),
            ("often", 2),
            ("weekly", 1),
        ]
        assert history[0]["ticks"]["fired"] == before
        assert history[1]["ticks"]["fired"] == len(rig.store.runs.newest()) - before
        kinds = {run.kind.value for run in rig.store.runs.newest()}
        assert kinds == {"incremental"}
        rig.assert_sound()


def test_what_is_outside_its_hours_is_not_said_to_start_with_its_next_tick(tmp_path: Path) -> None:
    in_three_days = time.gmtime(time.time() + 3 * DAY_S)
    day = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")[in_three_days.tm_wday]
    hours = {"every": "1m", "windows": [f"{day} 06:00-22:00"]}
    with rig_with(tmp_path, {"acme.com": {"schedule": hours}}) as rig:
        work_until(rig, lambda: len(rig.store.schedules.all()) == 1, "it is planned")

        begin = re.compile(r"not before its hours begin, in [23] d ")
        for words in (("schedules",), ("status",), ("schedules", "explain", "acme.com")):
            assert begin.search(said(rig, *words)), words
        [seen] = told(rig, "schedules")
        assert seen["hours_begin_at"].endswith("T06:00:00.000Z")
        assert seen["next_due_at"] < seen["hours_begin_at"]
        explained = said(rig, "explain", "acme.com")
        assert begin.search(explained)
        assert re.search(r"the next run is due in [23] d ", explained)


def test_calendar_of_what_will_start(tmp_path: Path) -> None:
    sources = {
        "acme.com": {"schedule": {"cron": "30 2 * * *"}},
        "busy.org": {"schedule": {"every": "1m", "windows": ["06:00-22:00"]}},
        "hand.org": {},
    }
    with rig_with(tmp_path, sources) as rig:
        coming = told(rig, "schedules", "next", "--days", "2")
        assert coming == sorted(coming, key=lambda each: each["at"])
        by_source = Counter((each["source"], each["is_denied"]) for each in coming)
        assert by_source["acme.com", False] == 2
        # It begins between two minutes: one more or less at the edges of its hours.
        assert abs(by_source["busy.org", False] - 2 * 16 * 60) <= 2
        assert abs(by_source["busy.org", True] - 2 * 8 * 60) <= 2
        assert "02:30:00" in said(rig, "schedules", "next", "--source", "acme.com")

        picture = tmp_path / "starts.svg"
        answer = told(rig, "schedules", "next", "--days", "2", "--svg", str(picture))
        assert answer["starts"] == by_source["acme.com", False] + by_source["busy.org", False]
        root = ET.fromstring(picture.read_text())  # noqa: S314
        cells = [each for each in root.iter("{http://www.w3.org/2000/svg}rect") if len(each)]
        assert len(cells) in (48, 72)
        assert "href" not in picture.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("next", "--days", "0"), "'0' is not a number from 1 up"),
        (("next", "--days", "400"), "'400' is more than 366 days"),
        (("next", "--source", "nobody"), "has no source 'nobody'"),
        (("next", "--svg", "no/such/folder/x.svg"), "can't be written"),
        (("explain", "nobody"), "has no source 'nobody'"),
        (("history",), "needs SOURCE"),
        (("nxt",), "there is no command 'nxt'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    with rig_with(tmp_path, {"acme.com": {"schedule": {"every": "1h"}}}) as rig:
        done = rig.penstock("schedules", *words)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_promise_that_is_broken_is_told(tmp_path: Path) -> None:
    with rig_with(tmp_path, {"acme.com": {"freshness": "1s"}}) as rig:
        work_until(rig, lambda: rig.events("sla.breached"), "it is broken")
        assert "broken since" in said(rig, "schedules", "explain", "acme.com")
        shown = told(rig, "schedules", "explain", "acme.com")
        assert shown["promises"]["freshness_s"] == 1.0
        assert [each["rule"] for each in shown["breaches"]] == ["freshness"]


def set_promise_back(rig: Rig, seconds: float) -> None:
    """As if it had been made so long ago."""
    connection = apsw.Connection(str(rig.database))
    connection.execute("UPDATE verification SET promised_at = promised_at - ?", (seconds,))
    connection.close()


def test_schema_that_nobody_verifies_is_stale_and_starts_a_run(tmp_path: Path) -> None:
    promised = {"schema_freshness": "30d", "schedule": {"signal": "schema.stale"}}
    with rig_with(tmp_path, {"acme.com": promised}) as rig:
        work_until(rig, lambda: rig.store.promises.verification(1).promised_at, "it is promised")
        set_promise_back(rig, 31 * 86_400.0)
        assert rig.events("schema.stale") == []
        work_until(rig, lambda: rig.events("run.completed"), "it has run")
        [stale] = rig.events("schema.stale")
        detail = "its schema was not verified for longer than 30 d"
        assert stale.detail == f"schema_freshness: {detail}"
        shown = said(rig, "status")
        assert "Broken promises" in shown
        assert detail in shown
        explained = said(rig, "schedules", "explain", "acme.com")
        assert "its schema is verified every 30 d; broken since" in explained
        assert "never" in explained
        [breach] = told(rig, "schedules", "explain", "acme.com")["breaches"]
        assert (breach["source"], breach["rule"]) == ("acme.com", "schema_freshness")
        assert told(rig, "status")["breaches"] == [breach]
        [source] = told(rig, "sources")
        assert source["breaches"] == [breach]
        assert len(rig.events("run.completed")) == 1
