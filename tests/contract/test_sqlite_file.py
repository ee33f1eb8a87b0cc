"""The SQLite file: who may open it, how it is written, copied and put back."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from penstock.clock import SystemClock
from penstock.errors import StoreError
from penstock.store.queries import queries
from penstock.store.schema import Migration, migrations
from penstock.store.sqlite import database, filesystem, migrate
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.migrate import APPLICATION_ID, PACKAGE
from penstock.store.sqlite.store import SqliteStore
from tests.contract.foreign import (
    NEWEST,
    make_foreign,
    make_foreign_with_id,
    make_foreign_with_version,
    make_newer,
    make_text,
    open_store,
)
from tests.contract.scenes import SQLITE, StoreKind, World, done, everything, retried


@pytest.fixture
def kind() -> StoreKind:
    """The file is SQLite's alone."""
    return SQLITE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "other.db"


def schema(path: Path) -> list[tuple[str, str, str]]:
    connection = apsw.Connection(str(path))
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")
    rows = [(kind, name, " ".join((sql or "").split())) for kind, name, sql in found]
    connection.close()
    return rows


# Migrations.


@pytest.mark.parametrize("start", [0, *(each.number for each in migrations(PACKAGE))])
def test_schema_is_the_same_fresh_and_migrated_from_any_version(tmp_path: Path, start: int) -> None:
    fresh, old = tmp_path / "fresh.db", tmp_path / "old.db"
    open_store(fresh).close()
    connection = apsw.Connection(str(old))
    if start:
        migrate.make(connection, SystemClock(), start)
    assert connection.pragma("user_version") == start
    connection.close()

    open_store(old).close()

    assert schema(old) == schema(fresh)


def test_migrations_are_numbered_without_gaps() -> None:
    assert [each.number for each in migrations(PACKAGE)] == list(range(1, NEWEST + 1))


def test_migration_that_fails_leaves_the_schema_it_found(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(file).close()
    before = schema(file)
    broken = [
        *migrations(PACKAGE),
        Migration(NEWEST + 1, "half", "CREATE TABLE half (a); CREATE TABLE half (a);"),
    ]
    monkeypatch.setattr(migrate, "migrations", lambda _: broken)

    with pytest.raises(StoreError, match="already exists"):
        open_store(file)

    monkeypatch.undo()
    assert schema(file) == before
    open_store(file).close()


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(30):
            file = tmp_path / f"{number}.db"
            stores = list(pool.map(open_store, [file] * 8))

    assert all(store.upkeep.check() == [] for store in stores)


def test_who_opens_a_new_file_while_another_makes_it_waits(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = apsw.Connection(str(file))
    maker.execute("BEGIN IMMEDIATE")
    waited: list[float] = []

    def let_go(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            maker.execute("COMMIT")

    monkeypatch.setattr("time.sleep", let_go)

    assert open_store(file).upkeep.check() == []
    assert len(waited) == 3


def test_new_file_that_another_keeps_is_given_up_with_a_clear_error(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = apsw.Connection(str(file))
    maker.execute("BEGIN IMMEDIATE")
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)

    with pytest.raises(StoreError, match="locked by another process for 30 s"):
        open_store(file)
    assert 29 < sum(waited) < 30


# What is refused.


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (make_newer, f"has schema {NEWEST + 1}"),
        (make_foreign, "not one of Penstock's"),
        (make_foreign_with_id, "not one of Penstock's"),
        (make_foreign_with_version, "not one of Penstock's"),
        (make_text, "not a database"),
        (make_folder, "can't open"),
    ],
)
def test_file_that_is_not_ours_is_refused_and_left_alone(
    file: Path, make: Callable[[Path], None], words: str
) -> None:
    make(file)
    before = file.read_bytes() if file.is_file() else b""

    with pytest.raises(StoreError, match=words):
        open_store(file)

    assert before == (file.read_bytes() if file.is_file() else b"")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "virtiofs", "fuse.sshfs"])
def test_network_file_system_is_refused(
    file: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = file.with_name("mountinfo")
    mounts.write_text(
        "20 1 0:1 / / rw - ext4 /dev/a rw\n"
        f"21 20 0:2 / {file.parent} rw,relatime shared:1 - {kind} server:/x rw\n"
        f"22 20 0:3 / {file.parent}-beside rw - ext4 /dev/b rw\n"
    )
    monkeypatch.setattr(filesystem, "MOUNTS", mounts)

    with pytest.raises(StoreError, match=rf"network file system \({kind}\)"):
        open_store(file)
    assert not file.exists()


def test_file_system_is_that_of_the_nearest_mount() -> None:
    mounts = (
        "20 1 0:1 / / rw - nfs4 server rw\n"
        "21 20 0:2 / /data rw - ext4 /dev/a rw\n"
        "22 21 0:3 / /data/my\\040disk rw - nfs server rw\n"
    )

    found = [
        filesystem.file_system_of(Path(path), mounts)
        for path in ("/x.db", "/data/x.db", "/data/my disk/x.db", "/database/x.db")
    ]

    assert found == ["nfs4", "ext4", "nfs", "nfs4"]


def test_old_sqlite_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "OLDEST_SAFE_SQLITE", 99_000_000)

    with pytest.raises(StoreError, match="can corrupt"):
        open_store(file)


# How it is written.


def traced(world: World) -> list[str]:
    """Every statement that the store runs from now on."""
    statements: list[str] = []
    assert isinstance(world.store, SqliteStore)

    def note(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        statements.append(sql)
        return True

    world.store._db.connection.set_exec_trace(note)
    return statements


def test_every_write_is_in_an_immediate_transaction(world: World) -> None:
    statements = traced(world)
    run_id = world.start_with_pages(3)
    one, two, three = world.claim()
    world.turn("w", done(one, effects=everything("a")), retried(two, 1))
    world.store.jobs.cancel(three.id, "ops", "")
    world.store.runs.pause(run_id, "ops", "")
    world.store.runs.resume(run_id, "ops", "")
    world.store.sources.pause(world.source(), "ops", "")
    world.store.workers.bury("w", "killed")
    world.store.runs.cancel(run_id, "ops", "")
    world.store.runs.sweep_cancelled()

    is_writing = False
    for sql in statements:
        verb = sql.split()[0] if not sql.startswith("--") else sql.split("\n")[1].split()[0]
        if verb == "BEGIN":
            assert sql == "BEGIN IMMEDIATE"
        is_writing = verb == "BEGIN" or (is_writing and verb not in ("COMMIT", "ROLLBACK"))
        assert is_writing or verb in ("SELECT", "COMMIT", "PRAGMA"), sql


def test_no_batch_is_bound_row_by_row(world: World) -> None:
    """Each row stepped hands the GIL to whoever is busy; a turn's statements must not grow with it."""
    world.start_with_pages(601)
    few, many = world.claim(slots=100), world.claim(slots=500)

    statements = traced(world)
    world.turn("w", *(done(job) for job in few))
    after_few = len(statements)
    world.turn("w", *(done(job) for job in many))

    assert len(statements) == 2 * after_few


def test_file_is_durable_before_a_verb_returns(world: World) -> None:
    assert isinstance(world.store, SqliteStore)
    connection = world.store._db.connection

    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2


def test_commit_of_another_connection_is_seen_once(world: World) -> None:
    other = open_store(world.file)
    assert not other.has_changed()

    world.start()

    assert other.has_changed()
    assert not other.has_changed()
    other.workers.register("other", "here", 1, "test")
    assert not other.has_changed(), "its own commits are no news"
    other.workers.sign_off("other")
    other.close()


def test_connection_carried_into_a_fork_is_refused_and_does_no_harm(world: World) -> None:
    run_id = world.start()

    child = os.fork()
    if child == 0:  # pragma: no cover
        code = 1
        try:
            world.store.jobs.enqueue(run_id, [])
        except StoreError as error:
            code = 0 if "forked" in error.message else 2
        world.store.close()
        os._exit(code)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    world.turn("w", done(world.one()))
    assert world.run(run_id).state == "completed"


def test_every_query_is_used() -> None:
    ours = Path(database.__file__).parent
    places = (ours, ours.parent, ours.parent / "turn")
    code = "".join(file.read_text() for place in places for file in place.glob("*.py"))

    assert [name for name in queries(PACKAGE) if f'"{name}"' not in code] == []


# Checks.


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE run_stage SET queued = queued + 1 WHERE stage = 'extract'", "counter"),
        ("UPDATE run_stage SET quarantined = 1 WHERE stage = 'extract'", "counter"),
        ("UPDATE job SET worker = 'ghost' WHERE state = 'running'", "without a worker"),
        ("DELETE FROM job_item WHERE job_id = 2", "no item: job 2"),
        ("INSERT INTO snapshot VALUES (1, 1, 1, 'u', 'gone', 200, '{}', 1.0, '')", "no payload"),
        ("UPDATE collection SET records = records + 1", "collection"),
        ("INSERT INTO collection VALUES ('ghost', 1)", "collection"),
        ("UPDATE run SET state = 'completed', finished_at = 1.0", "open jobs"),
    ],
)
def test_check_finds_what_is_wrong(tmp_path: Path, damage: str, words: str) -> None:
    world = World(SQLITE, tmp_path / "penstock.db")
    world.start_with_pages(3)
    world.turn("w", done(world.one(), effects=everything("a")))
    world.one()
    assert world.store.upkeep.check() == []

    world.tamper(damage)

    assert any(words in problem for problem in world.store.upkeep.check())
    world.store.close()


def test_check_finds_a_run_that_nothing_would_ever_end(tmp_path: Path) -> None:
    world = World(SQLITE, tmp_path / "penstock.db")
    world.start()
    world.tamper("DELETE FROM job")
    world.tamper("UPDATE run_stage SET queued = 0")

    assert any("nothing left to do" in problem for problem in world.store.upkeep.check())
    world.store.close()


def test_flipped_bytes_are_found_or_harmless_and_never_a_traceback(tmp_path: Path) -> None:
    world = World(SQLITE, tmp_path / "penstock.db")
    world.start_with_pages(300)
    world.turn("w", *(done(job, effects=everything(str(job.id))) for job in world.claim(slots=100)))
    world.store.close()
    good, rng = world.file.read_bytes(), random.Random(7)

    for number in range(60):
        bad = bytearray(good)
        for _ in range(20):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        file = tmp_path / f"bad-{number}.db"
        file.write_bytes(bytes(bad))
        with suppress(StoreError):
            store = open_store(file)
            store.quick_check()
            store.upkeep.check()
            store.overview()
            store.runs.newest()
            store.records.of("product")


def test_database_knows_its_own_mark(world: World) -> None:
    assert apsw.Connection(str(world.file)).pragma("application_id") == APPLICATION_ID
    assert SqliteDatabase(world.file, SystemClock()).data_version() >= 0
