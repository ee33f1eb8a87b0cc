"""A project moves to another database in the middle of its work, and nothing is lost or done twice."""

from __future__ import annotations

import json
import random
import subprocess
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from penstock.app.store_copy import Digest, digests
from penstock.cli import main
from penstock.clock import SystemClock
from penstock.demo.folder import lay_out
from penstock.demo.site import Site
from penstock.settings import load_settings
from penstock.store.address import open_end, open_store
from penstock.store.store import Store
from tests.contract.scenes import POSTGRES, SQLITE, Place, World, a_save, done
from tests.journeys.rig import CLOCK, ENVIRONMENT, PENSTOCK, until
from tests.postgres.fixtures import a_name
from tests.postgres.server import PASSWORD, Server

RECORDS = {"product": 208, "article": 36}


def penstock(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )


# The demo, half-way.


AS_IT_IS = "{concurrency: 8}"
SLOW = "{concurrency: 2, rate: 60/s}"


def configure(folder: Path, was: str, becomes: str) -> None:
    config = folder / "penstock.yaml"
    assert was in config.read_text()
    config.write_text(config.read_text().replace(was, becomes))


def what_came(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every record by collection, without what tells when and in which run it came."""
    return {
        collection: [
            (row.key, row.data, row.score, row.source, row.version)
            for row in store.records.of(collection, limit=1000)
        ]
        for collection in RECORDS
    }


def test_demo_begun_on_a_file_is_ended_on_a_server(tmp_path: Path, database: str) -> None:
    with Site() as site:
        undisturbed, moving = tmp_path / "undisturbed", tmp_path / "moving"
        for folder in (undisturbed, moving):
            lay_out(folder, site.ports)
        assert penstock(undisturbed, "run", "catalogue", "news").returncode == 0
        configure(moving, AS_IT_IS, SLOW)
        work_half_way(moving)

        told = penstock(moving, "db", "copy", "sqlite:penstock.db", database, "--json")
        assert told.returncode == 0, told.stderr
        configure(moving, "sqlite:penstock.db", database)
        configure(moving, SLOW, AS_IT_IS)
        (moving / "penstock.db").rename(moving / "old.db")
        ended = penstock(moving, "up", "--until-idle")
        assert ended.returncode == 0, ended.stderr

        with store_of(moving) as here, store_of(undisturbed) as there:
            assert what_came(here) == what_came(there)
            assert {name: len(rows) for name, rows in what_came(here).items()} == RECORDS
            counts = {
                run.source: (run.state, run.inserted, run.unchanged) for run in here.runs.newest()
            }
            assert counts == {"catalogue": ("completed", 208, 4), "news": ("completed", 36, 0)}
            assert here.upkeep.check() == []
        assert not (moving / "penstock.db").exists()


def store_of(folder: Path) -> AbstractContextManager[Store]:
    return closing(open_store(load_settings(folder), CLOCK))


def work_half_way(folder: Path) -> None:
    assert penstock(folder, "run", "catalogue", "news", "--detach").returncode == 0
    with (
        subprocess.Popen(
            [*PENSTOCK, "up"], cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
        ) as up,
        store_of(folder) as store,
    ):
        until(lambda: any(run.pages_done > 30 for run in store.runs.newest()), "it is half-way")
        up.terminate()
        up.communicate(timeout=120)
        assert store.runs.newest(active_only=True), "there is something left to do"


# Killed.


def some_project(place: Place, kind: Any) -> World:
    """Enough rows for a copy to have a middle."""
    world = World(kind, place)
    world.start_with_pages(6000)
    jobs = world.claim(slots=4000)
    for first in range(0, len(jobs), 1000):
        batch = jobs[first : first + 1000]
        world.turn("w", *(done(job, saves=[a_save(f"k{job.id}", {"n": job.id})]) for job in batch))
    world.store.workers.sign_off("w")
    world.store.close()
    return world


def held(address: str, folder: Path) -> dict[str, Digest]:
    end = open_end(address, folder, SystemClock())
    with end.reading():
        found = {each.table: each for each in digests(end, "", lambda _: None)}
    end.close()
    return found


@pytest.mark.parametrize(
    "kills",
    [
        10,
        pytest.param(200, marks=[pytest.mark.torture, pytest.mark.timeout(3600)]),
    ],
)
@pytest.mark.parametrize("way", ["to-server", "to-file"])
def test_copy_killed_at_random_moments_goes_on_and_ends_equal(
    tmp_path: Path, postgres: Server, database: str, way: str, kills: int
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    if way == "to-server":
        some_project(tmp_path / "a.db", SQLITE)
        origin = "sqlite:a.db"
    else:
        some_project(database, POSTGRES)
        origin = database
    wanted = held(origin, tmp_path)
    killed = copies = 0
    while killed < kills:
        copies += 1
        name = a_name()
        target = postgres.create_database(name) if way == "to-server" else f"sqlite:{copies}.db"
        killed += survive(tmp_path, origin, target, kills - killed, rng)
        found = held(target, tmp_path)
        assert {table for table in wanted if wanted[table] != found[table]} == {"event"}
        assert found["event"].rows == wanted["event"].rows + 1
        if way == "to-server":
            postgres.drop_database(name)
    print(f"killed {killed} times in {copies} copies")
    assert held(origin, tmp_path) == wanted


def survive(folder: Path, origin: str, target: str, most: int, rng: random.Random) -> int:
    """Copy in spite of at most so many kills; answers how many there were."""
    killed, words = 0, ("db", "copy", origin, target)
    while killed < most:
        with subprocess.Popen(
            [*PENSTOCK, *words], cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, text=True,
        ) as process:  # fmt: skip
            wait_until(CLOCK.monotonic() + rng.uniform(0.2, 1.5), process)
            if process.poll() is not None:
                assert process.returncode == 0
                return killed
            process.kill()
            killed += 1
    ended = penstock(folder, *words)
    assert ended.returncode == 0, ended.stderr
    return killed


def wait_until(moment: float, process: subprocess.Popen[str]) -> None:
    until(lambda: CLOCK.monotonic() >= moment, "the moment comes", process=process)


# What is said.


def test_copy_tells_what_it_did_and_what_is_left_to_do(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(SQLITE, tmp_path / "penstock.db")
    world.start_with_pages(2)
    world.store.workers.sign_off("w")
    world.store.close()

    assert main(["db", "copy", "sqlite:penstock.db", database, "--project", str(tmp_path)]) == 0

    told = capsys.readouterr().out
    [job] = [line.split() for line in told.splitlines() if line.startswith("job ")]
    assert job[:2] == ["job", "3"]
    assert len(job[2]) == 64
    assert "snapshots are files, and stay where they are" in told
    assert "`store:` in penstock.yaml" in told


def test_copy_in_json_has_each_table_with_its_rows_and_hash(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(SQLITE, tmp_path / "penstock.db")
    world.start()
    world.store.workers.sign_off("w")
    world.store.close()
    words = ["sqlite:penstock.db", database, "--json", "--project", str(tmp_path)]

    assert main(["db", "copy", *words]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["to"].startswith("postgresql://127.0.0.1:")
    assert (told["released"], told["is_resumed"]) == (0, False)
    rows = {each["table"]: each["rows"] for each in told["tables"]}
    assert told["rows"] == sum(rows.values())
    assert (rows["run"], rows["job"], rows["source"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("origin", "target", "code", "words"),
    [
        ("sqlite:a.db", "sqlite:b.db", 7, "penstock db backup"),
        ("sqlite:nothing.db", "postgresql://localhost/x", 5, "there is no database at"),
        ("penstock.db", "postgresql://localhost/x", 2, "FROM must be sqlite:FILE"),
        ("sqlite:a.db", "mysql://localhost/x", 2, "TO must be sqlite:FILE"),
        ("sqlite:a.db", "postgresql://me:hush-hush@127.0.0.1:1/x", 5, "can't reach the database"),
        ("postgresql://me:hush-hush@127.0.0.1:1/x", "sqlite:c.db", 5, "can't reach the database"),
        ("postgresql://me:hush-hush@127.0.0.1:1/x", "sqlite:no/c.db", 2, "there is no folder"),
    ],
)
def test_wrong_places_are_told_without_secrets(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    origin: str,
    target: str,
    code: int,
    words: str,
) -> None:
    SQLITE.open(tmp_path / "a.db", CLOCK).close()

    assert main(["db", "copy", origin, target, "--project", str(tmp_path)]) == code

    told = capsys.readouterr().err
    assert words in told
    assert "hush" not in told
    assert sorted(path.name for path in tmp_path.glob("[bc].db")) == []


def test_password_is_nowhere_in_what_is_told_or_written(
    tmp_path: Path, postgres: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    name = a_name()
    postgres.create_database(name)
    SQLITE.open(tmp_path / "a.db", CLOCK).close()
    url = postgres.url_with_password(name)
    words = ["db", "copy", url, "sqlite:b.db", "--project", str(tmp_path)]

    assert main(words) == 0

    told = capsys.readouterr()
    written = SQLITE.open(tmp_path / "b.db", CLOCK).journal.events()[-1]
    assert (written.kind, "postgresql://127.0.0.1" in written.detail) == ("db.copied", True)
    for text in (told.out, told.err, written.detail):
        assert PASSWORD not in text
        assert PASSWORD.split()[0] not in text
    postgres.drop_database(name)


def test_file_that_is_worked_on_is_not_copied(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock.engine.supervisor.lock import ProjectLock

    SQLITE.open(tmp_path / "a.db", CLOCK).close()
    for words in (["sqlite:a.db", database], [database, "sqlite:a.db"]):
        with ProjectLock(tmp_path / "a.db"):
            assert main(["db", "copy", *words, "--project", str(tmp_path)]) == 6
        assert "is working on a.db" in capsys.readouterr().err


def test_commands_on_half_a_copy_are_refused_and_say_how_to_go_on(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    POSTGRES.open(database, CLOCK).close()
    POSTGRES.tamper(database, "INSERT INTO copy VALUES ('sqlite:a.db', '[]', 'source', '[]', 0)")
    (tmp_path / "penstock.yaml").write_text(f"project: x\nstore: {database}\n")

    assert main(["status", "--project", str(tmp_path)]) == 7

    told = capsys.readouterr().err
    assert "holds an unfinished copy of sqlite:a.db" in told
    assert "penstock db copy" in told
