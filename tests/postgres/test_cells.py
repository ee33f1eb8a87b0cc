"""One project in three databases: a source is in exactly one of them, whatever happens while it moves."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock import Project
from penstock.app import cell_move
from penstock.app.cell_answers import PATIENCE_S
from penstock.app.cell_move import _copy
from penstock.app.views.quarantine import EntryFilter
from penstock.cli.entry import main
from penstock.errors import ConfigError, Refused, StoreUnreachable, UsageError
from penstock.jobs.job import NewJob
from penstock.settings.cells import IDS_PER_CELL
from penstock.settings.load import in_cell, load_settings
from penstock.store.postgres.session import Session
from penstock.store.postgres.source_rows import SourceRows
from tests.postgres.fixtures import a_name
from tests.postgres.server import Server
from tests.postgres.workspace import until

CELLS = ("main", "north", "south")
STEPS = """
import os
import time

from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"n": number}
    ctx.checkpoint(f"seen {ctx.params['pages']}")


@shop.step(after="discover", unit="page", key="n")
def extract(page, ctx):
    if page["n"] == ctx.params.get("bad"):
        raise ValueError("it is broken")
    gate = ctx.params.get("gate")
    while gate and not os.path.exists(gate):
        time.sleep(0.02)
    time.sleep(ctx.params.get("seconds", 0))
    ctx.save("product", key=f"{ctx.source.key}/{page['n']}", data={"pid": os.getpid()})
"""


class Told(NamedTuple):
    code: int
    stdout: str
    stderr: str


@dataclass
class World:
    """A project of three cells, and its sources."""

    folder: Path
    stores: dict[str, str]

    def write(self, sources: dict[str, Any], **more: Any) -> None:
        cells = {
            name: {"number": number, "store": self.stores[name]}
            for number, name in enumerate(CELLS)
            if number
        }
        settings = {
            "project": "shops",
            "store": self.stores["main"],
            "cells": cells,
            "worker": {"count": 2},
            "retries": {"once": {"class": "fast", "tries": 1, "unknown_tries": 1}},
            "sources": sources,
            **more,
        }
        (self.folder / "penstock.yaml").write_text(json.dumps(settings))

    @contextmanager
    def cell(self, name: str) -> Iterator[Project]:
        settings = load_settings(self.folder, environ={"PENSTOCK_CELL": name})
        with closing(Project(settings)) as project:
            yield project

    def penstock(self, capsys: pytest.CaptureFixture[str], *words: str, cell: str = "main") -> Told:
        capsys.readouterr()
        code = main(["--cell", cell, *words, "--project", str(self.folder)])
        return Told(code, *capsys.readouterr())

    def owners(self, key: str) -> list[str]:
        """The cells that would start a run of it."""
        found = []
        for name in CELLS:
            with self.cell(name) as project:
                why = project.why_not_started(project.source(key), "full")
                assert why == "" or " cell " in why or why.endswith("this cell")
                if not why:
                    found.append(name)
        return found

    def owners_of_reachable(self, key: str) -> list[str]:
        """The same without `south`, which is down."""
        found = []
        for name in CELLS[:2]:
            with self.cell(name) as project:
                if key in project.sources_here(project.connection):
                    found.append(name)
        return found

    def digest(self, name: str, key: str) -> dict[str, int]:
        """How many rows of each table a cell has of a source."""
        with self.cell(name) as project:
            project.connection.sources.ensure([key])
            digest = SourceRows(project.connection._db, key).digest()  # type: ignore[arg-type]
            return {table: rows for table, (rows, _) in digest.items() if rows}

    def assert_sound(self) -> None:
        for name in CELLS:
            with self.cell(name) as project:
                found = project.connection.upkeep.check()
                assert found == [], (name, found)


@pytest.fixture
def world(tmp_path: Path, postgres: Server, schema_template: str) -> Iterator[World]:
    names = [a_name() for _ in CELLS]
    stores = {
        cell: postgres.create_database(name, schema_template)
        for cell, name in zip(CELLS, names, strict=True)
    }
    (tmp_path / "steps.py").write_text(STEPS)
    yield World(tmp_path, stores)
    for name in names:
        postgres.drop_database(name)


def shop(params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    params = {"pages": 3, **(params or {})}
    return {"pipeline": "steps:shop", "params": params, "retry": "once", **more}


def without(rows: dict[str, int], *tables: str) -> dict[str, int]:
    return {table: count for table, count in rows.items() if table not in tables}


def with_history(world: World) -> None:
    """A source that has everything: ended and open runs, records, quarantine, snapshots, a closed gate."""
    (world.folder / "texts").mkdir()
    (world.folder / "texts" / "a.txt").write_text("one page, kept as it was")
    files = {"connector": "files", "folder": "./texts"}
    everything = {
        "schedule": {"every": "1h"},
        "budget": {"requests": "100/d"},
        "breaker": {"ratio": 0.5, "at_least": 10},
    }
    world.write(
        {
            "acme": shop({"bad": 1}, **everything),
            "papers": {**files, **everything},
            "other": shop(),
        }
    )
    with world.cell("main") as project:
        runs = [project.run(key) for key in ("acme", "papers", "other")]
        project.runs.finish(runs, tell=print)
        project.breakers.open("acme", for_s=3600, actor="ann", reason="on purpose")
        project.schedules.explain("acme")
        open_run = project.run("acme")
        project.connection.jobs.get(open_run)
        project.sources.pause("acme", actor="ann", reason="a while")


def test_source_moves_with_all_that_it_has_and_works_in_its_new_cell(world: World) -> None:
    with_history(world)
    before = {key: world.digest("main", key) for key in ("acme", "papers", "other")}
    assert before["acme"].keys() >= {
        "run", "run_stage", "job", "job_item", "job_failure", "record", "checkpoint", "breaker",
    }  # fmt: skip
    assert before["papers"].keys() >= {"snapshot", "record"}
    with world.cell("main") as project:
        [first] = [
            row for row in project.runs.list("acme", limit=9).items if row.state == "partial"
        ]
        for key in ("acme", "papers"):
            planned = project.cells.move(key, "north", dry_run=True)
            assert not planned.is_moved
            assert planned.records == before[key]["record"]
            moved = project.cells.move(key, "north", actor="ann", reason="it grows")
            assert moved.is_moved
    for key in ("acme", "papers"):
        after = world.digest("north", key)
        assert after == {**after, **without(before[key], "measured", "rollup")}
        assert world.digest("main", key).keys() <= {"source", "onboarding"}
        assert world.owners(key) == ["north"]
    assert world.digest("main", "other")["job"] == before["other"]["job"]
    world.assert_sound()

    with world.cell("north") as project:
        assert project.sources.get("acme").paused_at is not None
        assert project.breakers.list(limit=9).items[0].state == "open"
        [waiting] = project.quarantine.list(EntryFilter(source="acme"), limit=9).items
        assert waiting.run_id == first.id
        [record] = project.records.list("papers", limit=9).items
        assert record.snapshot_id is not None
        kept = project.connection.snapshots.get(record.snapshot_id)
        assert kept is not None
        assert project.read_page(kept).body == b"one page, kept as it was"
        kinds = [event.kind for event in project.journal.of_source("acme")]
        assert kinds[0] == "source.arrived"
        project.sources.resume("acme", actor="ann")
        project.breakers.close("acme", actor="ann")
        assert project.connection.upkeep.check() == []
        found = project.runs.finish(
            [project.runs.list("acme", active=True).items[0].id], tell=print
        )
        assert found[0].state in ("completed", "partial")
        new = project.run("papers")
        assert new > IDS_PER_CELL
        [ended] = project.runs.finish([new], tell=print)
        assert ended.state == "completed"
    with world.cell("main") as project:
        kinds = [event.kind for event in project.journal.of_source("acme")]
        assert kinds[:2] == ["source.left", "source.leaving"]
    world.assert_sound()


# Killed in the middle.


def moving_until(world: World, commits: int, to: str) -> bool:
    """Move the source in a process that is killed before this commit; True if it came to its end."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
    code = 1
    try:
        counted, commit = [0], Session._commit

        def committed(session: Session) -> None:
            counted[0] += 1
            if counted[0] == commits:
                os.kill(os.getpid(), signal.SIGKILL)
            commit(session)

        Session._commit = committed  # type: ignore[method-assign,assignment]
        with world.cell("main") as project:
            project.cells.move("acme", to, actor="ann", reason="it grows")
        code = 0
    finally:
        os._exit(code)


def with_queued_jobs(world: World) -> None:
    """A source with a run of five jobs that nobody works on."""
    world.write({"acme": shop(), "other": shop()})
    with world.cell("main") as project:
        run = project.run("acme")
        jobs = [NewJob("extract", str(n), json.dumps({"n": n}).encode()) for n in range(4)]
        project.connection.jobs.enqueue(run, jobs)


def test_move_that_is_killed_at_any_commit_leaves_one_owner_and_goes_on(world: World) -> None:
    with_queued_jobs(world)
    changing = ("measured", "rollup", "run_rollup", "onboarding")
    whole = without(world.digest("main", "acme"), *changing)
    assert whole["job"] == 5
    here, there, states = "main", "north", []
    for commits in range(1, 30):
        is_whole = moving_until(world, commits, there)
        with world.cell("main") as project:
            place = project.cells.get("acme")
            assert place.cell in (here, there), place
            states.append(place.state)
            # Stopped or not, no two cells would start anything of it.
            assert world.owners("acme") == ([place.cell] if place.state == "here" else [])
            rows = world.digest(place.cell, "acme")
            assert {**rows, **whole} == rows, (commits, place)
            if not is_whole:
                assert project.cells.move("acme", there, actor="ann").is_moved
            place = project.cells.get("acme")
        assert (place.cell, place.state) == (there, "here")
        assert world.owners("acme") == [there]
        rows = world.digest(there, "acme")
        assert {**rows, **whole} == rows
        assert world.digest(here, "acme").keys() <= {"source", "onboarding"}
        here, there = there, here
        if is_whole:
            break
    assert set(states) == {"here", "leaving", "arriving"}
    world.assert_sound()


# Stopped, drained, called off.


def test_source_that_moves_while_it_works_does_every_page_once(
    world: World, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    source = shop({"pages": 40, "gate": str(gate)}, limits={"concurrency": 4})
    world.write({"acme": source, "other": shop()})
    with working(world, "main"), working(world, "north"), world.cell("main") as project:
        run = project.run("acme")
        until(
            "it works",
            lambda: project.connection.cells.running(project.source_ids["acme"]) == 4,
            60,
        )
        with pytest.raises(Refused) as refused:
            project.cells.move("acme", "north", drain_s=0.5, actor="ann")
        assert refused.value.code == "source_running"
        assert world.owners("acme") == []
        assert project.cells.get("acme").state == "leaving"
        [stop] = [each for each in project.outlook(["acme"])[0].stops if each.name == "cell"]
        assert stop.by == "moving to cell north"
        with pytest.raises(Refused) as refused:
            project.runs.start("acme", new=True, actor="ann")
        assert refused.value.code == "other_cell"
        gate.write_text("")
        assert project.cells.move("acme", "north", actor="ann").is_moved
        with world.cell("north") as north:
            until("the run has ended in its new cell", lambda: north.require_run(run).is_ended, 120)
            assert north.require_run(run).state == "completed"
            records = north.connection.records.of("product", "", 1000)
            assert sorted(row.key for row in records) == sorted(f"acme/{n}" for n in range(40))
            assert {row.version for row in records} == {1}
            assert len({row.data["pid"] for row in records}) >= 2
    world.assert_sound()


def test_what_changes_after_it_was_copied_is_copied_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_queued_jobs(world)
    copied: list[object] = []

    def copy(*about: Any) -> object:
        found = _copy(*about)
        if not copied:
            with world.cell("main") as project:
                [run] = project.runs.list(source="acme").items
                project.runs.cancel(run.id, actor="ann", reason="too late for the copy")
        copied.append(found)
        return found

    monkeypatch.setattr(cell_move, "_copy", copy)
    with world.cell("main") as project:
        project.cells.move("acme", "north", actor="ann", reason="too many here")
    assert len(copied) == 2
    with world.cell("north") as project:
        [run] = project.runs.list(source="acme").items
        assert run.state == "cancelled"
    assert world.owners("acme") == ["north"]
    world.assert_sound()


def test_later_one_of_two_that_move_a_source_goes_on_and_the_other_writes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_queued_jobs(world)
    written: list[dict[str, int]] = []

    def copy(*about: Any) -> object:
        monkeypatch.setattr(cell_move, "_copy", _copy)
        origin, target, act, _ = about
        theirs = "another"
        origin = cell_move._leave(origin.again("acme"), target, act, theirs, placed=False)
        cell_move._claim(target.again("acme"), origin, act, theirs)
        written.append(world.digest("north", "acme"))
        return _copy(*about)

    monkeypatch.setattr(cell_move, "_copy", copy)
    with world.cell("main") as project:
        with pytest.raises(Refused) as refused:
            project.cells.move("acme", "north", actor="ann")
        assert refused.value.code == "move_in_progress"
        assert [world.digest("north", "acme")] == written
        project.cells.move("acme", "north", actor="ann")
    assert world.owners("acme") == ["north"]
    world.assert_sound()


def test_move_that_has_begun_is_called_off(world: World) -> None:
    with_queued_jobs(world)
    whole = world.digest("main", "acme")
    with world.cell("main") as project:
        commits = 1
        while project.cells.get("acme").state == "here":
            assert not moving_until(world, commits, "north")
            commits += 1
        # Until what was copied is in both.
        while "job" not in world.digest("north", "acme"):
            assert not moving_until(world, commits, "north")
            commits += 1
        assert project.cells.get("acme").state == "leaving"
        with pytest.raises(Refused) as refused:
            project.cells.move("acme", "south", actor="ann")
        assert refused.value.code == "move_in_progress"
        stays = project.cells.move("acme", "main", actor="ann", reason="not today")
        assert not stays.is_moved
        assert project.cells.get("acme").state == "here"
        assert world.owners("acme") == ["main"]
        assert without(world.digest("main", "acme"), "onboarding") == whole
        assert world.digest("north", "acme").keys() <= {"source", "onboarding"}
        event = project.journal.of_source("acme")[0]
        assert (event.kind, event.detail) == ("source.stayed", "not moved to cell north: not today")
    world.assert_sound()


# Who owns what.


def test_new_source_is_placed_by_its_key_and_nobody_else_performs_it(world: World) -> None:
    keys = [f"shop-{number}" for number in range(30)]
    world.write({key: shop() for key in keys})
    with world.cell("main") as project:
        usual = {key: project.cells.get(key).usual for key in keys}
        assert set(usual.values()) == set(CELLS)
        chosen = next(key for key, cell in usual.items() if cell == "south")
        assert project.cells.place(chosen, dry_run=True).to == "south"
        assert world.owners(chosen) == ["main"]
        assert project.cells.place(chosen, actor="ann", reason="new").is_moved
        assert world.owners(chosen) == ["south"]
        with pytest.raises(Refused, match="placed in south"):
            project.cells.place(chosen, to="north")
        with pytest.raises(Refused) as refused:
            project.run(chosen)
        assert refused.value.code == "other_cell"
        project.runs.finish([project.run(keys[0] if keys[0] != chosen else keys[1])], tell=print)
        with pytest.raises(Refused, match="has a history"):
            project.cells.place(keys[0] if keys[0] != chosen else keys[1], to="north")
    with world.cell("south") as project:
        [ended] = project.runs.finish([project.run(chosen)], tell=print)
        assert ended.state == "completed"
        assert {event.kind for event in project.journal.of_source(chosen)} >= {"source.placed"}


def test_sources_that_save_the_same_records_stay_together(world: World) -> None:
    both = {"pipeline": "same:same"}
    (world.folder / "same.py").write_text(
        "from penstock import Pipeline\nsame = Pipeline('same')\n\n\n@same.step(unit='run')\n"
        "async def one(ctx):\n    yield {'by': ctx.source.key}\n\n\n"
        "@same.step(after='one', unit='page', key='by')\ndef two(item, ctx):\n"
        "    ctx.save('product', key='shared', data=item, merge='replace')\n"
    )
    world.write({"acme": both, "other": both, "third": both})
    with world.cell("main") as project:
        # One after the other: what one transaction saves twice has one version.
        for key in ("acme", "other"):
            [ended] = project.runs.finish([project.run(key)], tell=print)
            assert ended.state == "completed"
        with pytest.raises(Refused) as refused:
            project.cells.move("acme", "north")
        assert refused.value.code == "shared_records"
        project.cells.place("third", to="north", actor="ann")
    with world.cell("north") as project:
        project.runs.finish([project.run("third")], tell=print)
        with pytest.raises(Refused) as refused:
            project.cells.move("third", "main")
        assert refused.value.code == "shared_records"
        # What can't be moved is not left stopped.
        assert world.owners("third") == ["north"]


def test_cell_that_is_down_is_named_in_bounded_time_and_the_others_are_summed(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with_queued_jobs(world)
    with world.cell("main") as project:
        project.cells.move("acme", "north", actor="ann")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"postgresql://penstock@127.0.0.1:{silent.getsockname()[1]}/nothing"
        world.stores["south"] = place
        world.write({"acme": shop(), "other": shop()})
        with world.cell("main") as project:
            began = time.monotonic()
            found = project.cells.status()
            assert time.monotonic() - began < 3 * PATIENCE_S
            assert not found.is_whole
            assert found.unreachable == ["south"]
            assert (found.sources, found.queued, found.active_runs) == (2, 5, 1)
            assert project.cells.get("acme").cell == "north"
            rows = {row.key: row.cell for row in project.cells.sources().items}
            assert rows == {"acme": "north", "other": "main"}
            with pytest.raises(StoreUnreachable, match="cell south does not answer"):
                project.cells.move("acme", "south")
            assert world.owners_of_reachable("acme") == ["north"]
        told = world.penstock(capsys, "cells", "status")
        assert told.code == 3, told
        assert "cell south does not answer" in told.stderr
        told = world.penstock(capsys, "cells", "list", "--json")
        assert [row["is_reachable"] for row in json.loads(told.stdout)] == [True, True, False]


def test_command_line_asks_and_says_what_it_does(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with_queued_jobs(world)

    def told(*words: str, cell: str = "main") -> Told:
        return world.penstock(capsys, *words, cell=cell)

    found = told("cells", "move", "acme", "--to", "north")
    assert found.code == 7, found
    assert "Stop and move acme from main to north?" in found.stderr
    found = told("cells", "move", "acme", "--to", "north", "--dry-run")
    expected = "acme would move from main to north, with 1 runs, 5 jobs, 0 records"
    assert found.stdout.startswith(expected), found
    found = told("cells", "move", "acme", "--to", "north", "--yes", "--reason", "it grows")
    assert (found.code, found.stdout) == (0, "acme is in north\n"), found
    assert (
        json.loads(told("cells", "show", "acme", "--json", cell="south").stdout)["cell"] == "north"
    )
    found = told("run", "acme")
    assert found.code == 7, found
    assert "acme is in cell north" in found.stderr
    assert "penstock cells show acme" in found.stderr
    rows = json.loads(told("cells", "sources", "--json").stdout)
    assert {row["source"]: row["cell"] for row in rows} == {"acme": "north", "other": "main"}
    [north] = json.loads(told("cells", "sources", "--in", "north", "--json").stdout)
    assert north["queued"] == 5
    for words, code in (
        (("cells", "move", "acme", "--to", "nowhere", "--yes"), 2),
        (("cells", "move", "acme", "--to", "north", "--yes"), 7),
        (("cells", "show", "nobody"), 2),
    ):
        found = told(*words)
        assert found.code == code, (words, found)
        assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"main": {"number": 1, "store": "STORE"}}, "main is the database that `store:` names"),
        ({"a b": {"number": 1, "store": "STORE"}}, "can't be the name of a cell"),
        ({"north": {"store": "STORE"}}, "number"),
        ({"north": {"number": 0, "store": "STORE"}}, "number"),
        ({"north": {"number": 1, "store": "sqlite:north.db"}}, "cells are on Postgres"),
        ({"north": {"number": 1, "store": "MAIN"}}, "is the database of main, too"),
        ({"north": {"number": 1, "store": "STORE", "snapshots": "snapshots"}}, "where main stores"),
        (
            {"n": {"number": 1, "store": "STORE"}, "s": {"number": 1, "store": "OTHER"}},
            "is the number of n, too",
        ),
    ],
)
def test_mistakes_of_the_configuration_are_named(
    tmp_path: Path, cells: dict[str, Any], words: str
) -> None:
    places = {
        "MAIN": "postgresql://h/main",
        "STORE": "postgresql://h/a",
        "OTHER": "postgresql://h/b",
    }
    text = json.dumps({"project": "p", "store": "MAIN", "cells": cells, "sources": {}})
    for name, place in places.items():
        text = text.replace(f'"{name}"', json.dumps(place)) if name != "MAIN" else text
    text = text.replace('"store": "MAIN"', f'"store": "{places["MAIN"]}"')
    (tmp_path / "penstock.yaml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_settings(tmp_path, environ={})
    assert words in refused.value.message


def test_databases_are_not_mixed_up(world: World) -> None:
    world.write({"acme": shop()})
    with world.cell("north") as project:
        assert project.connection.cells.identity() == ("north", 1)
    world.stores["north"], world.stores["south"] = world.stores["south"], world.stores["north"]
    world.write({"acme": shop()})
    with world.cell("south") as project, pytest.raises(Refused) as refused:
        _ = project.connection
    assert refused.value.code == "other_cell_database"
    with world.cell("main") as project, pytest.raises(UsageError):
        project.cells.move("acme", "nowhere")
    alone = {"project": "shops", "store": world.stores["south"], "sources": {}}
    (world.folder / "penstock.yaml").write_text(json.dumps(alone))
    with (
        closing(Project(load_settings(world.folder, environ={}))) as project,
        pytest.raises(Refused) as refused,
    ):
        _ = project.connection
    assert refused.value.code == "other_cell_database"
    with closing(Project(load_settings(world.folder, environ={}))) as project:
        assert in_cell(project.settings, None) is project.settings


@contextmanager
def working(world: World, cell: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`penstock up` of a cell."""
    command = [sys.executable, "-m", "penstock", "up", "--project", str(world.folder), *words]
    log = (world.folder / f"{cell}.log").open("w")
    process = subprocess.Popen(
        command, env={**os.environ, "PENSTOCK_CELL": cell}, stdout=log, stderr=log, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        code = process.wait(timeout=120)
        log.close()
        assert code == 0, (world.folder / f"{cell}.log").read_text()
