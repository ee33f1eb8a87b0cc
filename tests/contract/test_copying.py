"""Moving a project: what arrives is what was there, in whatever database, however often it was cut off."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.app import store_copy
from penstock.app.store_copy import Copied, Digest, Step, copy_project, digests
from penstock.audit.chain import head_of
from penstock.audit.verification import Verification
from penstock.clock import Clock
from penstock.errors import PenstockError, Refused, StoreError, StoreUnreachable
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects
from penstock.store.copy_progress import End
from penstock.store.postgres.copy_end import PostgresEnd
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.snapshots import Kept
from penstock.store.sqlite.copy_end import SqliteEnd
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.tables import TABLES
from penstock.store.upkeep import Keep
from penstock.store.workers import LEASE_S
from tests.contract.scenes import (
    POOLED,
    POSTGRES,
    SQLITE,
    Place,
    StoreKind,
    World,
    a_save,
    done,
    everything,
    quarantined,
    retried,
    skipped,
    snoozed,
    throttled,
)
from tests.postgres.fixtures import a_name
from tests.postgres.pgbouncer import PgBouncer
from tests.postgres.proxy import Fault, Proxy
from tests.postgres.server import Server

WAYS = [(SQLITE, POSTGRES), (POSTGRES, SQLITE), (POSTGRES, POSTGRES), (SQLITE, POOLED)]
WITH_TRANSACTIONS = ("event", "record", "record_version")
NAMES = [f"{origin.name}-{target.name}" for origin, target in WAYS]


class Places:
    """Files and databases of one test."""

    def __init__(self, folder: Path, server: Server, template: str, pooler: PgBouncer) -> None:
        self._folder = folder
        self._server = server
        self._template = template
        self._pooler = pooler
        self._made: list[str] = []

    def new(self, kind: StoreKind) -> Place:
        name = a_name()
        if kind is SQLITE:
            return self._folder / f"{name}.db"
        self._made.append(name)
        url = self._server.create_database(name, self._template)
        return self._pooler.through(url) if kind is POOLED else url

    def drop(self) -> None:
        for name in self._made:
            self._server.drop_database(name)


@pytest.fixture
def places(
    tmp_path: Path, postgres: Server, schema_template: str, pgbouncer: PgBouncer
) -> Iterator[Places]:
    made = Places(tmp_path, postgres, schema_template, pgbouncer)
    yield made
    made.drop()


@pytest.fixture(params=WAYS[:2], ids=NAMES[:2])
def way(request: pytest.FixtureRequest) -> tuple[StoreKind, StoreKind]:
    found: tuple[StoreKind, StoreKind] = request.param
    return found


@pytest.fixture
def origin(way: tuple[StoreKind, StoreKind], places: Places) -> Iterator[World]:
    made = World(way[0], places.new(way[0]))
    yield made
    made.store.close()


@pytest.fixture
def target(way: tuple[StoreKind, StoreKind], places: Places) -> Place:
    return places.new(way[1])


def end_of(place: Place, clock: Clock) -> End:
    if isinstance(place, Path):
        return SqliteEnd(SqliteDatabase(place, clock, purpose="copy"))
    return PostgresEnd(PostgresDatabase(place, clock, time=clock, purpose="copy"))


def quietly(_: Step) -> None:
    return None


def copied(
    world: World, place: Place, tell: Callable[[Step], None] = quietly, restart: bool = False
) -> Copied:
    return moved(world.path, place, world.clock, tell, restart)


def moved(
    here: Place,
    there: Place,
    clock: Clock,
    tell: Callable[[Step], None] = quietly,
    restart: bool = False,
) -> Copied:
    with closing(end_of(here, clock)) as origin, closing(end_of(there, clock)) as target:
        return copy_project(origin, target, "ops", tell, restart)


def held(world: World, place: Place) -> dict[str, Digest]:
    with closing(end_of(place, world.clock)) as end, end.reading():
        return {each.table: each for each in digests(end, "", quietly)}


def arrived(world: World, kind: StoreKind, place: Place) -> World:
    """The copy, with a worker called "w" of its own."""
    return World(kind, place, world.clock, dict(world.limits))


def live_a_little(world: World) -> int:
    """A project with something in every table."""
    run_id = world.start_with_pages(12)
    jobs = world.claim(slots=9)
    world.store.turn("w", [], Capacity(0), {}, [a_page(jobs[0].id, run_id)])
    world.turn(
        "w",
        done(jobs[0], effects=everything("a")),
        done(jobs[1], effects=everything("b")),
        quarantined(jobs[2], "it's\n“broken” — \U0001f4a5"),
        retried(jobs[3], 5.0),
        throttled(jobs[4], 7.5),
        skipped(jobs[5]),
        snoozed(jobs[6], 0.1),
    )
    world.start(source="beta.org", key="other")
    world.store.sources.pause(world.source("beta.org"), "ops", "moving")
    world.store.leaders.lead("scheduler", "host/1/x", 1.0)
    world.store.hosts.reserve([])
    world.clock.advance(2.0)
    return run_id


def a_page(job_id: int, run_id: int) -> Kept:
    about = ("https://acme.com/1", 200, {"content-type": "text/html"}, 1e9 + 1 / 3)
    return Kept(77, job_id, run_id, *about, "ab" * 32, "segment-1.warc.gz", 10, 2000)


def stop(world: World) -> None:
    """Whoever works there is gone, and has left jobs behind."""
    world.clock.advance(LEASE_S + 1)


# What arrives.


@pytest.mark.parametrize("way", WAYS, ids=NAMES, indirect=True)
def test_copy_holds_what_was_there_and_is_sound(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    live_a_little(origin)
    origin.store.workers.sign_off("w")
    before = held(origin, origin.path)

    told = copied(origin, target)

    after = held(origin, target)
    assert {each.table: each for each in told.tables} == before == held(origin, origin.path)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"event"}, "the copy's journal says one thing more"
    store = way[1].open(target, origin.clock)
    last = store.journal.events()[-1]
    assert (last.kind, last.actor) == ("db.copied", "ops")
    assert store.upkeep.check() == []
    assert store.runs.newest() == origin.store.runs.newest()
    assert store.sources.all() == origin.store.sources.all()
    assert store.records.of("product") == origin.store.records.of("product")
    assert store.records.versions("product", "shared") == origin.store.records.versions(
        "product", "shared"
    )
    assert store.overview() == origin.store.overview()
    store.close()


def test_work_goes_on_in_the_copy_and_no_id_is_given_twice(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    run_id = live_a_little(origin)
    origin.store.workers.sign_off("w")
    copied(origin, target)

    copy = arrived(origin, way[1], target)
    copy.clock.advance(10.0)
    copy.store.runs.retry_failed(run_id, "ops", "")
    while jobs := copy.claim():
        copy.turn("w", *(done(job, saves=[a_save(f"late-{job.id}", {})]) for job in jobs))
    copy.start(source="third.net", key="new")
    assert copy.run(run_id).state == "completed"
    assert copy.run(run_id).inserted >= 12
    copy.close()


def test_known_key_is_known_in_the_copy(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    run_id = origin.start_with_pages(3)
    [before] = origin.enqueue(run_id, "page-000001")
    origin.store.workers.sign_off("w")
    copied(origin, target)

    copy = arrived(origin, way[1], target)
    [known, new] = copy.enqueue(run_id, "page-000001", "another")
    assert (known.job_id, known.is_new, new.is_new) == (before.job_id, False, True)
    copy.close()


def test_seals_of_the_journal_hold_in_the_copy(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    origin.start_with_pages(5)
    origin.clock.advance(0.1)
    origin.turn("w", *(done(job) for job in origin.claim()))
    origin.store.audit.seal_all()
    before = origin.store.audit.last()
    origin.store.workers.sign_off("w")
    copied(origin, target)

    copy = arrived(origin, way[1], target)
    copy.store.audit.seal_all()
    found = Verification()
    for seal, lines in copy.store.audit.walk():
        found.seal(seal, lines)
    assert before is not None
    found.anchors([head_of(before)])
    assert found.findings == []
    assert found.events > before.events
    copy.close()


def test_ids_of_what_is_gone_are_not_given_again(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    run_id = origin.start_with_pages(5)
    origin.turn("w", *(done(job) for job in origin.claim()))
    last = max(job.id for job in origin.jobs(run_id))
    origin.clock.advance(100.0)
    while origin.store.upkeep.prune(Keep(1.0, 1.0, None, None)):
        pass
    assert origin.jobs(run_id) == []
    origin.store.workers.sign_off("w")
    origin.clock.advance(100.0)
    while origin.store.upkeep.prune(Keep(1.0, 1.0, None, None)):
        pass

    copied(origin, target)

    copy = arrived(origin, way[1], target)
    next_run = copy.start(key="next")
    assert min(job.id for job in copy.jobs(next_run)) > last
    assert next_run > run_id
    copy.close()


def test_leases_are_void_in_the_copy_and_no_attempt_is_spent(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    origin.start_with_pages(3)
    running = origin.claim(slots=2)
    stop(origin)

    told = copied(origin, target)

    assert told.released == 2
    assert origin.job(running[0].id).state == "running", "the origin is left as it was"
    copy = arrived(origin, way[1], target)
    again = {job.id: job for job in copy.claim()}
    assert len(again) == 3
    for job in running:
        assert (again[job.id].tries, again[job.id].deaths) == (job.tries, 0)
        assert again[job.id].attempt == job.attempt + 1
    copy.close()


def test_numbers_arrive_to_the_last_bit(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    scores = [0.1 + 0.2, -0.0, 5e-324, 1.7976931348623157e308, 1e22, 7.0]
    saves = [a_save(f"{number}", {}, score=score) for number, score in enumerate(scores)]
    origin.start()
    origin.turn("w", done(origin.one(), saves=saves))
    origin.store.workers.sign_off("w")
    # A zero below zero is one that SQLite does not know.
    origin.tamper("UPDATE record SET score = '-0.0' WHERE score = 0")

    copied(origin, target)

    store = way[1].open(target, origin.clock)
    assert [record.score for record in store.records.of("product")] == scores
    store.close()


def test_text_that_only_one_database_can_hold_arrives_readable(places: Places) -> None:
    world, target = World(SQLITE, places.new(SQLITE)), places.new(POSTGRES)
    run_id = world.start()
    world.store.workers.sign_off("w")
    world.tamper("UPDATE run SET reason = 'a' || char(0) || 'b'")

    copied(world, target)

    store = POSTGRES.open(target, world.clock)
    run = store.runs.get(run_id)
    assert run is not None
    assert run.reason == r"a\x00b"
    store.close()
    world.store.close()


def test_target_that_holds_no_run_is_good_enough(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    """`penstock status` on a new address has made its sources known there."""
    live_a_little(origin)
    origin.store.workers.sign_off("w")
    store = way[1].open(target, origin.clock)
    store.sources.ensure(["zeta.io", "acme.com"])
    store.sources.pause(2, "ops", "")
    store.close()

    copied(origin, target)

    store = way[1].open(target, origin.clock)
    assert store.sources.all() == origin.store.sources.all()
    store.close()


# Cut off.


class CutOff(Exception):
    """The copying process ended here."""


class Fragile:
    """An end whose process dies at the n-th of its acts."""

    def __init__(self, end: End, dies_at: int) -> None:
        self._end = end
        self._dies_at = dies_at
        self.acts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._end, name)

    def _act(self) -> None:
        self.acts += 1
        if self.acts == self._dies_at:
            raise CutOff

    def clear(self) -> None:
        self._end.clear()
        self._act()

    def add(self, *args: Any) -> None:
        self._act()
        self._end.add(*args)
        self._act()

    def raise_ids(self, last_ids: dict[str, int]) -> None:
        self._act()
        self._end.raise_ids(last_ids)
        self._act()


def cut_off_at(world: World, place: Place, number: int) -> bool:
    """Copy, and die at this act; False if there were not so many."""
    with ExitStack() as stack:
        here = stack.enter_context(closing(end_of(world.path, world.clock)))
        there = stack.enter_context(closing(end_of(place, world.clock)))
        fragile = Fragile(there, number)
        try:
            copy_project(here, fragile, "ops", quietly)
        except CutOff:
            return True
    return False


def test_copy_cut_off_anywhere_goes_on_and_comes_to_the_same(
    origin: World, way: tuple[StoreKind, StoreKind], places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy, "BATCH_ROWS", 6)
    live_a_little(origin)
    stop(origin)
    whole = places.new(way[1])
    expected = copied(origin, whole)
    wanted = held(origin, whole)

    target, cuts = places.new(way[1]), 0
    while cut_off_at(origin, target, 2 + cuts % 4):
        cuts += 1
        with pytest.raises(Refused, match="unfinished copy"):
            way[1].open(target, origin.clock)
    assert cuts > 10
    found = held(origin, target)
    assert {**found, "event": None} == {**wanted, "event": None}
    assert found["event"].rows == wanted["event"].rows
    assert expected.released == 2


def test_copy_whose_connection_is_cut_at_any_statement_goes_on(
    places: Places, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy, "BATCH_ROWS", 20)
    world, target = World(SQLITE, places.new(SQLITE)), str(places.new(POSTGRES))
    live_a_little(world)
    stop(world)
    rng, cuts = random.Random(11), 0

    for _ in range(500):
        # What is sent after COPY has no answer before its end that could be held back.
        fault, at = rng.choice([(Fault.CUT_BEFORE, ""), (Fault.CUT_AFTER, r"\A(?!COPY)")])
        # The check at the end takes more than a statement for each table.
        proxy.fail(fault, at=at, nth=rng.randint(8, 120))
        try:
            told = copied(world, proxy.through(target))
            break
        except StoreUnreachable:
            cuts += 1
            proxy.heal()
    proxy.heal()
    assert cuts > 3
    assert told.is_resumed
    before, after = held(world, world.path), held(world, target)
    # What its last finishing may have done twice is said twice, and done once.
    assert {name for name in before if before[name] != after[name]} <= {
        "event", "worker", "job", "run_stage",
    }  # fmt: skip
    copy = arrived(world, POSTGRES, target)
    assert copy.store.overview().running == 0
    copy.close()
    world.store.close()


def test_copy_of_a_copy_back_again_is_what_it_was(
    origin: World, target: Place, places: Places, way: tuple[StoreKind, StoreKind]
) -> None:
    live_a_little(origin)
    origin.store.workers.sign_off("w")
    copied(origin, target)
    back = places.new(way[0])
    moved(target, back, origin.clock)

    first, last = held(origin, origin.path), held(origin, back)
    assert {name for name in first if first[name] != last[name]} == {"event"}
    assert last["event"].rows == first["event"].rows + 2


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_any_world_copied_there_and_back_equals_itself(places: Places, seed: int) -> None:
    rng = random.Random(seed)
    here, there = rng.choice([(SQLITE, POSTGRES), (POSTGRES, SQLITE)])
    world = World(here, places.new(here))
    live_at_random(world, rng)
    world.store.workers.sign_off("w")
    stop(world)

    middle, back = places.new(there), places.new(here)
    copied(world, middle)
    moved(middle, back, world.clock)

    first, last = held(world, world.path), held(world, back)
    assert {name for name in first if first[name] != last[name]} <= {"event"}
    store = here.open(back, world.clock)
    assert store.upkeep.check() == []
    store.close()
    world.close()


def live_at_random(world: World, rng: random.Random) -> None:
    world.start_all({f"s{n}.com": rng.randrange(6) for n in range(rng.randint(1, 3))})
    ends = [
        lambda job: done(job, effects=everything(str(rng.randrange(5)))),
        lambda job: quarantined(job, "x" * rng.randrange(2000)),
        lambda job: retried(job, rng.uniform(0, 9)),
        lambda job: throttled(job, rng.uniform(0, 9), "h.com"),
        skipped,
    ]
    for _ in range(rng.randint(1, 8)):
        world.clock.advance(rng.uniform(0, 5))
        jobs = world.claim(slots=rng.randint(1, 5))
        world.turn("w", *(rng.choice(ends)(job) for job in jobs if rng.random() < 0.8))
        world.store.workers.beat("w")
    if rng.random() < 0.3:
        world.store.runs.cancel(world.store.runs.newest()[0].id, "ops", "")
        while world.store.runs.sweep_cancelled():
            pass


# What is refused.


def test_project_is_not_copied_onto_itself(places: Places) -> None:
    world = World(POSTGRES, places.new(POSTGRES))
    with pytest.raises(Refused, match="holds the project already"):
        copied(world, world.path)
    world.close()


def test_target_that_holds_a_project_is_refused_and_left_alone(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    origin.store.workers.sign_off("w")
    other = World(way[1], target)
    other.start()
    other.store.workers.sign_off("w")
    before = other.dump()

    for restart in (False, True):
        with pytest.raises(Refused, match="holds a project already"):
            copied(origin, target, restart=restart)

    assert other.dump() == before
    other.close()


def test_nothing_is_copied_while_somebody_works_on_either_side(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    with pytest.raises(Refused, match="a worker on here is working on"):
        copied(origin, target)
    origin.store.workers.sign_off("w")

    other = World(way[1], target, origin.clock)
    with pytest.raises(Refused, match="a worker on here is working on"):
        copied(origin, target)
    other.store.workers.sign_off("w")

    origin.store.leaders.lead("scheduler", "there/1/x", 5.0)
    with pytest.raises(Refused, match=r"a scheduler \(there/1/x\) is working on"):
        copied(origin, target)
    origin.clock.advance(6.0)
    copied(origin, target)
    other.close()


def test_unfinished_copy_of_something_else_is_not_gone_on_with(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind], places: Places
) -> None:
    live_a_little(origin)
    stop(origin)
    assert cut_off_at(origin, target, 9)
    origin.start(key="meanwhile")

    with pytest.raises(Refused, match="is another project or has changed since"):
        copied(origin, target)
    told = copied(origin, target, restart=True)

    assert not told.is_resumed
    copy = arrived(origin, way[1], target)
    assert len(copy.store.runs.newest()) == 3
    copy.close()


def test_origin_that_changes_meanwhile_is_noticed(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    live_a_little(origin)
    origin.store.workers.sign_off("w")
    is_first = True

    def change(step: Step) -> None:
        nonlocal is_first
        if step.act == "copying" and is_first:
            is_first = False
            origin.start(key="meanwhile")

    with pytest.raises(StoreError, match="was changed while it was copied"):
        copied(origin, target, change)
    with pytest.raises(Refused, match="unfinished copy"):
        way[1].open(target, origin.clock)


def test_nobody_can_work_on_an_unfinished_copy_even_who_was_there_before(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    live_a_little(origin)
    stop(origin)
    early = way[1].open(target, origin.clock)
    assert cut_off_at(origin, target, 9)

    with pytest.raises(Refused, match=r"unfinished copy of .* no worker can start"):
        early.workers.register("early", "there", 1, "test")
    early.close()


def test_two_who_copy_at_once_come_to_one_copy(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy, "BATCH_ROWS", 5)
    live_a_little(origin)
    stop(origin)
    is_first = True

    def overtake(step: Step) -> None:
        nonlocal is_first
        if step.act == "copying" and step.table == "job" and is_first:
            is_first = False
            copied(origin, target)

    copied(origin, target, overtake)

    copy = arrived(origin, way[1], target)
    assert copy.kinds().count("db.copied") == 1
    copy.close()


def test_copy_that_is_done_is_said_to_be_until_somebody_works_there(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    """Whoever was killed after the last commit asks again."""
    live_a_little(origin)
    stop(origin)
    first = copied(origin, target)
    before = held(origin, target)

    again = copied(origin, target)

    assert (again.tables, again.is_resumed, again.released) == (first.tables, True, 0)
    assert held(origin, target) == before
    copy = arrived(origin, way[1], target)
    copy.store.workers.sign_off("w")
    for restart in (False, True):
        with pytest.raises(Refused, match="holds a project already"):
            copied(origin, target, restart=restart)
    copy.close()


def test_copy_that_is_not_what_was_copied_is_an_error(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    live_a_little(origin)
    origin.store.workers.sign_off("w")

    def meddle(step: Step) -> None:
        if step.act == "copying" and step.table == "leader":
            way[1].tamper(target, "UPDATE record SET score = 0.25 WHERE id = 1")
            way[1].tamper(target, "DELETE FROM checkpoint")

    with pytest.raises(StoreError, match="is not what was copied: record, checkpoint"):
        copied(origin, target, meddle)


def test_fractions_of_money_and_seconds_arrive_to_the_last_bit(
    origin: World, target: Place, way: tuple[StoreKind, StoreKind]
) -> None:
    run_id = origin.start_with_pages(3)
    for job, money in zip(origin.claim(slots=3), (0.1, 0.2, 945.25), strict=True):
        origin.turn("w", done(job, effects=Effects(spent={"money": money, "seconds": money / 3})))
    before = origin.store.runs.get(run_id)
    stop(origin)

    copied(origin, target)

    copy = arrived(origin, way[1], target)
    after = copy.store.runs.get(run_id)
    copy.close()
    assert before is not None
    assert after is not None
    assert (after.money, after.seconds) == (before.money, before.seconds)
    assert after.money == pytest.approx(945.55)


# The list of tables.


def test_list_of_tables_is_that_of_the_sqlite_schema(places: Places) -> None:
    file = places.new(SQLITE)
    SQLITE.open(file, World(SQLITE, file).clock).close()
    connection = apsw.Connection(str(file))
    names = {
        str(name)
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    }
    # How far exports have read, and what the next run is compared with, is the database's own.
    assert names - {"migration", "copy", "export_cursor", "run_field"} == {
        table.name for table in TABLES
    }
    for table in TABLES:
        found: list[Any] = connection.execute(f"PRAGMA table_info({table.name})").fetchall()
        kinds = {
            row[1]: "real" if row[2] == "REAL" else "plain" for row in found if row[1] != "epoch"
        }
        keys = [row[1] for row in sorted(found, key=lambda row: row[5]) if row[5]]
        ours = {c.name: "plain" if c.kind == "flag" else c.kind for c in table.columns}
        assert ours == kinds, table.name
        assert list(table.key) == keys == [c.name for c in table.columns[: len(keys)]]
    connection.close()


def test_list_of_tables_is_that_of_the_postgres_schema(places: Places) -> None:
    only_here = {("collection", "id"), *((table, "tx") for table in WITH_TRANSACTIONS)}
    kinds = {"double precision": "real", "boolean": "flag"}
    with psycopg.connect(str(places.new(POSTGRES)), autocommit=True) as connection:
        found = connection.execute(
            "SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns AS c"
            " JOIN information_schema.tables AS t USING (table_schema, table_name)"
            " WHERE t.table_schema = 'penstock' AND t.table_type = 'BASE TABLE'"
        ).fetchall()
    theirs = {
        (table, column): kinds.get(kind, "plain")
        for table, column, kind in found
        if table not in ("migration", "copy", "tally", "job_key", "export_cursor", "run_field")
        and (table, column) not in only_here
    }
    assert theirs == {(t.name, c.name): c.kind for t in TABLES for c in t.columns}


def test_batches_are_bounded_by_rows_and_by_text() -> None:
    rows = [(number, "x" * 1_000_000) for number in range(10)]
    assert [len(batch) for batch in store_copy._batches(rows)] == [4, 4, 2]
    assert [len(batch) for batch in store_copy._batches((n,) for n in range(12_000))] == [
        5000,
        5000,
        2000,
    ]


def test_error_of_the_target_is_told_in_words(origin: World, places: Places) -> None:
    origin.store.workers.sign_off("w")
    with pytest.raises(PenstockError):
        copied(origin, "postgresql://nobody:secret@127.0.0.1:1/nothing")
