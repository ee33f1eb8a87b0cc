"""Backfills with the real command: planned, killed, taken up again, filled where something is missing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.job import JobState
from penstock.pipeline.planner import AHEAD_JOBS, CHUNK_UNITS
from penstock.prove.killer import Killer
from tests.journeys.rig import CountingSite, Rig, counting_site, kill, until

PRICES = """
from penstock import Pipeline

prices = Pipeline("prices")


@prices.step(unit="run")
async def discover(ctx):
    day = 1 + (await ctx.cursor("AAPL") or 0)
    yield {"partition": "AAPL", "from": f"2020-01-{day:02}", "to": f"2020-01-{day + 1:02}"}
    ctx.checkpoint(day, partition="AAPL", offset=100 * day)


@prices.step(after="discover", unit="page", windows=True)
async def fetch(ctx):
    window = ctx.window
    url = f"{ctx.params['site']}/{window.partition}/{window.start:%Y-%m-%dT%H}?ms={ctx.params['ms']}"
    response = await ctx.fetch(url)
    ctx.checkpoint(1, partition=window.partition)
    yield {"path": response.text}


@prices.step(after="fetch", unit="candidate")
def persist(row, ctx):
    ctx.save("price", key=row["path"], data=row)
"""
YEAR = ("--from", "2024-01-01", "--to", "2024-12-31")
SHARE = 4


@pytest.fixture(scope="module")
def site() -> Iterator[CountingSite]:
    with counting_site() as served:
        yield served


def source_of(site: CountingSite, ms: int = 0, host: int = 1, **backfill: Any) -> dict[str, Any]:
    """Each test has an address of the site to itself, and a path of its own through its partitions."""
    return {
        "pipeline": "steps:prices",
        "params": {"site": f"http://127.0.0.{host}:{site.port}", "ms": ms},
        "fetch": {"allow_private": True, "robots": False},
        "limits": {"concurrency": 2 * SHARE},
        "backfill": {"window": "1d", "share": 0.5, **backfill},
    }


def asked_for(site: CountingSite, partition: str) -> dict[str, int]:
    return {path: n for path, n in site.counts().items() if path.startswith(f"/{partition}/")}


def test_plan_says_what_it_would_take_and_makes_nothing(tmp_path: Path, site: CountingSite) -> None:
    with Rig(tmp_path, {"prices": source_of(site, partitions=["A", "B"])}, PRICES) as rig:
        told = rig.penstock("backfill", "prices", *YEAR, "--plan")
        as_json = rig.penstock("backfill", "prices", *YEAR, "--plan", "--json")

        assert told.returncode == 0, told.stderr
        assert "units       732" in told.stdout
        assert "assumed: 1 s a unit, 4 at once" in told.stdout
        plan = json.loads(as_json.stdout)
        assert (plan["units"], plan["calls"], plan["seconds"]) == (732, 732, 183.0)
        assert not rig.database.exists()
        assert not (tmp_path / "snapshots").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["prices", "--from", "soon", "--to", "2024-01-01"], "'soon' is not a day or a time"),
        (["prices", "--from", "2024-02-01", "--to", "2024-01-01"], "begins before it ends"),
        (["prices", "--from", "2024-01-01"], "needs --to"),
        (["prices", *YEAR, "--window", "9"], "--window: '9' is not a duration"),
        (["price", *YEAR], "has no source 'price'"),
        (["bare", *YEAR], "bare can't be backfilled: it has no backfill settings"),
        (["flat", *YEAR], "has no step that takes windows"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_line(
    tmp_path: Path, site: CountingSite, words: list[str], told: str
) -> None:
    flat = (
        "\nflat = Pipeline('flat')\n\n\n@flat.step(unit='run')\ndef nothing():\n    return None\n"
    )
    source = source_of(site)
    bare = {name: value for name, value in source.items() if name != "backfill"}
    sources = {"prices": source, "bare": bare, "flat": {**source, "pipeline": "steps:flat"}}
    with Rig(tmp_path, sources, PRICES + flat) as rig:
        done = rig.penstock("backfill", *words)

        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr
        assert not rig.database.exists()


def test_backfill_killed_at_sixty_percent_fetches_only_the_rest(
    tmp_path: Path, site: CountingSite
) -> None:
    assert_only_the_rest(tmp_path, site, "killed", "sqlite:penstock.db")


def test_backfill_on_a_server_killed_at_sixty_percent_fetches_only_the_rest(
    tmp_path: Path, site: CountingSite, database: str
) -> None:
    assert_only_the_rest(tmp_path, site, "served", database)


def assert_only_the_rest(tmp_path: Path, site: CountingSite, name: str, store: str) -> None:
    units = 366
    source = source_of(site, ms=20, host=2, partitions=[name])
    with Rig(tmp_path, {"prices": source}, PRICES, store=store) as rig:
        process = rig.start("backfill", "prices", *YEAR, "--yes")
        until(rig.store.runs.newest, "the run is there", process=process)
        [run] = rig.store.runs.newest()
        rig.wait_for_pages(run.id, units * 6 // 10, process)
        process.kill()
        process.wait()
        killed = {worker.id for worker in rig.store.workers.all()}
        done_before = rig.run(run.id).pages_done
        assert units * 6 // 10 <= done_before < units

        again = rig.penstock("backfill", "prices", *YEAR, "--yes")

        assert again.returncode == 0, again.stderr
        assert f"run {run.id} of prices has not ended yet; continuing it" in again.stderr
        ended = rig.run(run.id)
        assert (ended.state, ended.pages, ended.inserted, ended.unchanged) == (
            "completed", units, units, 0,
        )  # fmt: skip
        asked = asked_for(site, name)
        assert len(asked) == units
        # Only what was on its way when it was killed is asked for again.
        assert sum(asked.values()) <= units + SHARE
        assert rig.store.checkpoints.cursors(ended.source_id) == {}
        # A killed worker may stay registered until its lease ends; nobody else may.
        assert {worker.id for worker in rig.store.workers.all()} <= killed
        until(lambda: nobody_is_left(rig), "the killed worker is reaped")
        rig.assert_sound()


def nobody_is_left(rig: Rig) -> bool:
    """Reap whose lease has ended, as the next worker would."""
    for worker in rig.store.workers.expired():
        rig.store.workers.bury_if_expired(worker, "its lease has ended")
    return rig.store.workers.all() == []


@pytest.mark.parametrize(
    ("days", "kills"),
    [
        (366, 6),
        pytest.param(3653, 200, marks=[pytest.mark.timeout(3600), pytest.mark.torture]),
    ],
)
def test_backfill_killed_at_random_moments_has_every_record_once(
    tmp_path: Path, site: CountingSite, days: int, kills: int
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    name = f"random{days}"
    source = source_of(site, ms=20, host=3, partitions=[f"{name}a", f"{name}b"])
    since = "2024-01-01" if days == 366 else "2015-01-01"
    with Rig(tmp_path, {"prices": source}, PRICES) as rig:
        words = ("backfill", "prices", "--from", since, "--to", "2024-12-31", "--yes", "--detach")
        queued = rig.penstock(*words, "--json")
        assert queued.returncode == 0, queued.stderr
        run_id = json.loads(queued.stdout)["run"]
        killer = Killer(rig, random.Random(seed), run_id, 2 * days, kills)
        process = rig.start("up", "--until-idle")
        while sum(killer.deaths.values()) < kills and killer.wait(process):
            if killer.strike(process):
                process = rig.start("up", "--until-idle")
        assert process.wait(timeout=120) == 0, rig.output(process)

        print(f"killed {killer.deaths}")
        rig.assert_sound()
        run = rig.run(run_id)
        assert (run.state, run.pages, run.inserted, run.unchanged) == (
            "completed", 2 * days, 2 * days, 0,
        )  # fmt: skip
        asked = asked_for(site, name + "a") | asked_for(site, name + "b")
        assert len(asked) == 2 * days
        again = sum(job.attempt - 1 for job in rig.jobs(stage="fetch"))
        assert sum(asked.values()) <= 2 * days + again
        covered = rig.store.sources.covered(run.source_id, [f"{name}a", f"{name}b"], 0, 2e9)
        assert len(covered) == 2 * days


def test_fifty_thousand_units_begin_at_once_and_are_planned_as_they_go(
    tmp_path: Path, site: CountingSite
) -> None:
    source = source_of(site, ms=5, host=4, partitions=["many"], window="10m")
    with Rig(tmp_path, {"prices": source}, PRICES) as rig:
        queued = rig.penstock("backfill", "prices", *YEAR, "--yes", "--detach", "--json")
        assert queued.returncode == 0, queued.stderr
        run_id = json.loads(queued.stdout)["run"]
        assert len(rig.jobs()) == 1, "nothing is planned yet"

        process = rig.start("up", "--until-idle")
        rig.wait_for_pages(run_id, 1, process)
        first = len(rig.jobs(stage="fetch"))
        rig.wait_for_pages(run_id, 300, process)

        assert first <= AHEAD_JOBS + CHUNK_UNITS
        assert rig.run(run_id).pages <= AHEAD_JOBS + CHUNK_UNITS + 300 + 50
        cancelled = rig.penstock("cancel", str(run_id), "--yes")
        assert cancelled.returncode == 0, cancelled.stderr
        assert process.wait(timeout=120) == 0, rig.output(process)
        assert rig.run(run_id).state == "cancelled"
        rig.assert_sound()


def test_second_backfill_of_a_range_is_a_reconciliation(tmp_path: Path, site: CountingSite) -> None:
    source = source_of(site, host=5, partitions=["twice"])
    january = ("--from", "2024-01-01", "--to", "2024-01-31")
    with Rig(tmp_path, {"prices": source}, PRICES) as rig:
        rig.penstock("backfill", "prices", *january, "--yes")
        second = rig.penstock("backfill", "prices", *january, "--yes")

        assert second.returncode == 0, second.stderr
        assert "run 1 has ingested this before: run 2 reconciles" in second.stderr
        listed = json.loads(rig.penstock("runs", "--json").stdout)
        assert [(row["run"], row["is_reconciliation"]) for row in listed] == [(2, True), (1, False)]
        assert listed[0]["counts"]["unchanged"] == 31
        assert "backfill (reconciliation)" in rig.penstock("runs").stdout
        assert rig.store.records.collections() == [("price", 31)]


def test_missing_fetches_what_is_not_there_and_says_so_before(
    tmp_path: Path, site: CountingSite
) -> None:
    source = source_of(site, host=6, partitions=["gaps"])
    with Rig(tmp_path, {"prices": source}, PRICES) as rig:
        rig.penstock("backfill", "prices", "--from", "2024-01-05", "--to", "2024-01-09", "--yes")
        words = ("backfill", "prices", "--from", "2024-01-01", "--to", "2024-01-31", "--missing")
        planned = json.loads(rig.penstock(*words, "--plan", "--json").stdout)
        done = rig.penstock(*words, "--yes")

        assert done.returncode == 0, done.stderr
        assert (planned["units"], planned["expected"]) == (26, 31)
        assert [(gap["from"][:10], gap["to"][:10]) for gap in planned["missing"]] == [
            ("2024-01-01", "2024-01-05"), ("2024-01-10", "2024-02-01"),
        ]  # fmt: skip
        asked = asked_for(site, "gaps")
        assert (len(asked), max(asked.values())) == (31, 1)


def test_backfill_is_paused_and_resumed(tmp_path: Path, site: CountingSite) -> None:
    # So long that it is far from its end when the command to pause has come up, on a busy machine too.
    source = source_of(site, ms=100, host=7, partitions=["paused"])
    with Rig(tmp_path, {"prices": source}, PRICES) as rig:
        queued = rig.penstock("backfill", "prices", *YEAR, "--yes", "--detach", "--json")
        run_id = json.loads(queued.stdout)["run"]
        process = rig.start("up", "--until-idle")
        rig.wait_for_pages(run_id, 50, process)
        assert rig.penstock("pause", str(run_id)).returncode == 0
        until(lambda: not rig.jobs(JobState.RUNNING), "what ran has ended")
        stopped = rig.run(run_id).pages_done
        assert rig.penstock("resume", str(run_id)).returncode == 0
        rig.wait_for_pages(run_id, stopped + 20, process)
        kill(process.pid)
        process.wait()
        finished = rig.penstock("up", "--until-idle")

        assert finished.returncode == 0, finished.stderr
        assert rig.run(run_id).state == "completed"
        assert sum(asked_for(site, "paused").values()) <= 366 + SHARE


# Checkpoints.


def test_checkpoint_is_looked_at_and_moved_back_by_hand(tmp_path: Path, site: CountingSite) -> None:
    with Rig(tmp_path, {"prices": source_of(site, host=8)}, PRICES) as rig:
        for _ in range(3):
            assert rig.penstock("run", "prices").returncode == 0
        [row] = json.loads(rig.penstock("checkpoints", "prices", "--json").stdout)
        assert (row["partition"], row["cursor"], row["offset"], row["run"]) == ("AAPL", 3, 300, 3)

        rewind = ("checkpoint", "rewind", "prices", "AAPL")
        preview = rig.penstock(*rewind, "--to-run", "1", "--dry-run")
        assert preview.stdout == "AAPL of prices would go from 3 to 1; would fetch 2 units again\n"
        unasked = rig.penstock(*rewind, "--to", "1")
        assert (unasked.returncode, "say --yes" in unasked.stderr) == (7, True)
        assert json.loads(rig.penstock("checkpoints", "prices", "--json").stdout) == [row]

        done = rig.penstock(*rewind, "--to", "1", "--yes", "--reason", "wrong prices")
        assert done.returncode == 0, done.stderr
        history = rig.penstock("checkpoints", "prices", "--history", "AAPL", "--json")
        acts = [
            (move["act"], move["cursor"], move["reason"]) for move in json.loads(history.stdout)
        ]
        assert acts[0] == ("rewound", 1, "wrong prices")
        assert [act for act, _, _ in acts].count("refused") == 2, "a page marks 1 again and again"
        assert "AAPL: 3 → 1 (wrong prices)" in [e.detail for e in rig.events("checkpoint.rewound")]

        assert rig.penstock("run", "prices").returncode == 0
        assert asked_for(site, "AAPL")["/AAPL/2020-01-02T00"] == 2
        [row] = json.loads(rig.penstock("checkpoints", "prices", "--json").stdout)
        assert row["cursor"] == 2


def test_checkpoint_is_not_moved_back_while_a_run_goes_on(
    tmp_path: Path, site: CountingSite
) -> None:
    with Rig(tmp_path, {"prices": source_of(site, host=9)}, PRICES) as rig:
        for _ in range(2):
            rig.penstock("run", "prices")
        rig.enqueue("prices")
        rewind = ("checkpoint", "rewind", "prices", "AAPL", "--to", "1", "--yes")

        refused = rig.penstock(*rewind)
        forced = rig.penstock(*rewind, "--force", "--json")

        assert (refused.returncode, "has not ended" in refused.stderr) == (7, True)
        assert json.loads(forced.stdout) == {
            "partition": "AAPL", "from": 2, "to": 1, "units": 1, "moves": 1, "is_done": True,
        }  # fmt: skip
