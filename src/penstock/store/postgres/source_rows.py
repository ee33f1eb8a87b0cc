"""Every row that belongs to one source: what a move carries from one cell's database to another's.

The journal, logs and what was delivered to hooks stay where they were written: the journal is sealed there.
Ids go with the rows, because no two cells give out the same ones; only a source's own number differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from typing import Any

from penstock.errors import Refused
from penstock.gates.onboarding import SourceState
from penstock.journal.event import Event
from penstock.store.cells import CellRow, change_row
from penstock.store.copy_progress import Row, encode
from penstock.store.postgres.copy_end import PostgresEnd
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.tables import TABLES, Table

BATCH_ROWS = 5_000
WITHOUT_LIMITS = (
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
)
SUMS = 1 << 256

_OF_SOURCE = "source_id = %(id)s"
_OF_RUNS = "run_id IN (SELECT id FROM penstock.run WHERE source_id = %(id)s)"
_OF_JOBS = "job_id IN (SELECT id FROM penstock.job WHERE source_id = %(id)s)"
_OF_ALERTS = "alert_id IN (SELECT id FROM penstock.alert WHERE source_id = %(id)s)"

# Which rows of each table are a source's. Tables that are missing here stay in their database.
MOVED: dict[str, str] = {
    **dict.fromkeys(
        (
            "health", "onboarding", "compliance_check", "run", "job", "cause", "reject", "record", "page",
            "checkpoint", "checkpoint_move", "coverage", "delivery", "landed", "hook", "schedule",
            "schedule_version", "tick", "cadence", "announcement", "breach", "verification", "alert",
            "rollup", "sql_source",
        ),
        _OF_SOURCE,
    ),
    **dict.fromkeys(
        (
            "run_stage", "probe", "staged", "staged_page", "replay", "run_cursor", "snapshot",
            "run_rollup", "measured",
        ),
        _OF_RUNS,
    ),
    **dict.fromkeys(
        ("job_item", "job_failure", "interruption", "host_wait", "sent", "open_attempt", "released_attempt"),
        _OF_JOBS,
    ),
    "record_version": "record_id IN (SELECT id FROM penstock.record WHERE source_id = %(id)s)",
    **dict.fromkeys(("alert_pin", "alert_notice"), _OF_ALERTS),
    "hold": "scope = %(key)s",
    "pace": "key = %(key)s",
    "breaker": "key = 'source:' || %(key)s::text",
    "budget": f"""scope = 'source:' || %(key)s::text
      OR scope IN (SELECT 'run:' || id FROM penstock.run WHERE {_OF_SOURCE})""",
}  # fmt: skip
# Rows that others may have, too: they are copied where they are missing, and stay in the origin.
SHARED: dict[str, str] = {
    "compliance_text": f"hash IN (SELECT hash FROM penstock.compliance_check WHERE {_OF_SOURCE})",
    "signal": f"id IN (SELECT signal_id FROM penstock.delivery WHERE {_OF_SOURCE})",
}
# Tables in the order of a copy: what others refer to comes first.
MOVED_TABLES = tuple(table for table in TABLES if table.name in MOVED)
SHARED_TABLES = tuple(table for table in TABLES if table.name in SHARED)
# Of a source's own row: how it stands. Its number and its key are each database's own.
STANDING = ("paused_at", "pause_reason", "cooldown_until", "cooldown_reason", "level", "created_at")
# The sequences whose ids move with their rows. Those of the journal never do.
NUMBERED = ("run", "job", "record", "reject", "signal", "alert", "measured", "compliance_check")
# Kept beside the rows of a source, and made of them anew.
_BESIDE = ("tally", "job_key", "canary_run", "canary_sample")

Digests = dict[str, tuple[int, str]]


class SourceRows:
    """One source's rows in one database. Inside a transaction of that database, whoever asks."""

    def __init__(self, db: PostgresDatabase, key: str) -> None:
        self.db = db
        self.key = key
        self.id = self.sources()[key]
        self._end = PostgresEnd(db)

    def reading(self) -> AbstractContextManager[None]:
        """One moment of this database, for as long as this lasts."""
        return self.db.reading()

    @contextmanager
    def writing(self) -> Iterator[float]:
        """One transaction, however long it takes, with the source's lane locked."""
        with self.db.patient(), self.db.writing() as now:
            self.db.run_sql(WITHOUT_LIMITS)
            self.db.lock_lanes([self.id])
            yield now

    def say(
        self,
        now: float,
        seen: CellRow,
        made: CellRow,
        begins: SourceState,
        event: Event | None,
        actor: str,
    ) -> bool:
        """Say where the source is, in the transaction of `writing`."""
        return change_row(self.db, now, self.id, seen, made, begins, event, actor)

    def sources(self) -> dict[str, int]:
        """The number of each source here, by its key."""
        found: dict[str, int] = self.db.json("source_ids")
        return found

    def standing(self) -> Row:
        """How the source stands: paused, cooling down."""
        names = ", ".join(STANDING)
        [row] = self._select(f"SELECT {names} FROM penstock.source WHERE id = %(id)s")
        return tuple(row)

    def rows(self, table: Table) -> Iterator[Row]:
        """The source's rows of a table in the order of their keys, never many of them in memory."""
        where = MOVED.get(table.name) or SHARED[table.name]
        return self._end.rows_where(table, where, {"id": self.id, "key": self.key})

    def digest(self) -> Digests:
        """Of every table that moves: how many rows, and the sum of their hashes."""
        found = {table.name: _digest(self.rows(table)) for table in MOVED_TABLES}
        return {**found, "source": _digest([self.standing()])}

    def counts(self) -> dict[str, int]:
        """How much there is of what people ask about."""
        return {
            name: self._count(f"SELECT count(*) FROM penstock.{name} WHERE {MOVED[name]}")
            for name in ("run", "job", "record", "snapshot", "checkpoint", "schedule")
        }

    def places(self, after: str, limit: int) -> list[tuple[str, str, int, int]]:
        """Where the next of the source's raw payloads lie, in the order of their hashes."""
        return [
            (str(row[0]), str(row[1]), int(row[2]), int(row[3]))
            for row in self._select(
                f"""SELECT p.hash, p.segment, p."offset", p.length FROM penstock.payload AS p
                WHERE p.hash > %(after)s AND p.hash IN (SELECT hash FROM penstock.snapshot WHERE {_OF_RUNS})
                ORDER BY p.hash LIMIT %(limit)s""",
                after=after,
                limit=limit,
            )
        ]

    def missing_payloads(self) -> int:
        """How many of the source's pages have no raw payload here."""
        return self._count(
            f"""SELECT count(*) FROM penstock.snapshot AS s WHERE {_OF_RUNS}
            AND NOT EXISTS (SELECT 1 FROM penstock.payload AS p WHERE p.hash = s.hash)"""
        )

    def shared_with(self) -> list[str]:
        """Other sources that have saved records which this one saved, too, or the other way round."""
        found = self._select(
            """SELECT DISTINCT s.key FROM penstock.source AS s WHERE s.id IN (
                SELECT v.source_id FROM penstock.record AS r
                JOIN penstock.record_version AS v ON v.record_id = r.id
                WHERE r.source_id = %(id)s AND v.source_id <> %(id)s
                UNION ALL
                SELECT r.source_id FROM penstock.record_version AS v
                JOIN penstock.record AS r ON r.id = v.record_id
                WHERE v.source_id = %(id)s AND r.source_id <> %(id)s
              ) ORDER BY s.key LIMIT 10"""
        )
        return [str(key) for (key,) in found]

    # Arriving.

    def put(
        self,
        tables: Iterable[tuple[Table, Iterable[Row]]],
        shared: Iterable[tuple[Table, Iterable[Row]]],
        standing: Row,
    ) -> None:
        """Put these rows in the place of all that is here of the source."""
        self.clear()
        for table, rows in shared:
            self._add_held(table, self._hold(table, rows), "ON CONFLICT DO NOTHING")
        for table, rows in tables:
            if table.name == "record":
                held = self._hold(table, rows)
                self._refuse_known(held)
                self._add_held(table, held)
                continue
            for batch in _batches(rows):
                self._end.add(table, batch)
        made = ", ".join(f"{name} = %({name})s" for name in STANDING)
        about = dict(zip(STANDING, standing, strict=True))
        self._do(f"UPDATE penstock.source SET {made} WHERE id = %(id)s", **about)
        self._count_records(1)

    def clear(self) -> None:
        """Nothing of the source is left here but its own row; inside a transaction."""
        self._count_records(-1)
        for name in _BESIDE:
            self._do(f"DELETE FROM penstock.{name} WHERE {_OF_RUNS}")
        for table in reversed(MOVED_TABLES):
            self._do(f"DELETE FROM penstock.{table.name} WHERE {MOVED[table.name]}")

    def _count_records(self, times: int) -> None:
        """What the source's records add to the counters of their collections, or with -1 take from them."""
        self._do(
            """INSERT INTO penstock.collection (name, records)
            SELECT collection, %(times)s * count(*) FROM penstock.record
            WHERE source_id = %(id)s AND NOT is_removed GROUP BY collection""",
            times=times,
        )

    def _hold(self, table: Table, rows: Iterable[Row]) -> str:
        """Put rows aside until the transaction ends; answers with where."""
        held = f"moved_{table.name}"
        self._do(
            f"CREATE TEMPORARY TABLE {held} ON COMMIT DROP AS "
            f"SELECT {_names(table)} FROM penstock.{table.name} LIMIT 0"
        )
        for batch in _batches(rows):
            self.db.put(f"COPY {held} ({_names(table)}) FROM STDIN", batch)
        return held

    def _add_held(self, table: Table, held: str, otherwise: str = "") -> None:
        names = _names(table)
        self._do(
            f"INSERT INTO penstock.{table.name} ({names}) SELECT {names} FROM {held} {otherwise}"
        )

    def _refuse_known(self, held: str) -> None:
        """Refuse records that another source has saved here: there would be two of one, and then one."""
        found = self._select(
            f"""SELECT s.key, count(*) FROM penstock.record AS r JOIN {held} AS h USING (collection, key)
            JOIN penstock.source AS s ON s.id = r.source_id GROUP BY s.key ORDER BY s.key LIMIT 5"""
        )
        if found:
            others = ", ".join(f"{key} ({count})" for key, count in found)
            raise Refused(
                f"records of {self.key} are in that cell already, saved by {others}",
                "sources that save the same records belong into one cell",
                code="shared_records",
            )

    # Statements of our own; names of tables and columns are ours, never anybody's input.

    def _select(self, text: str, **values: Any) -> list[Any]:
        return self.db.ask(text, {"id": self.id, "key": self.key, **values})

    def _do(self, text: str, **values: Any) -> None:
        self.db.ask(text, {"id": self.id, "key": self.key, **values})

    def _count(self, text: str) -> int:
        return int(self._select(text)[0][0])


def begin_ids_at(db: PostgresDatabase, first: int) -> None:
    """Give out ids from here on, in every table whose rows move; in a transaction, in a new database."""
    for name in NUMBERED:
        db.rows("raise_last_id", table=f'"{db.namespace}".{name}', id=first)


def translated(
    table: Table, rows: Iterable[Row], numbers: Mapping[int, int], **set_to: Any
) -> Iterator[Row]:
    """The rows as another cell has them: sources by their numbers there, and no line of its journal."""
    names = [column.name for column in table.columns]
    sources = [at for at, name in enumerate(names) if name == "source_id"]
    fixed = {names.index(name): value for name, value in set_to.items() if name in names}
    if table.name == "run":
        fixed[names.index("first_event_id")] = 0
    if table.name == "signal":
        fixed[names.index("is_open")] = 0
    for row in rows:
        made = list(row)
        for at in sources:
            made[at] = numbers.get(made[at], made[at])
        for at, value in fixed.items():
            made[at] = value
        yield tuple(made)


class Digest:
    """How many rows there were, and the sum of their hashes: the same in whatever order they come."""

    def __init__(self) -> None:
        self._rows = self._sum = 0

    def add(self, row: Row) -> None:
        self._sum += int.from_bytes(sha256(encode(row)).digest(), "big")
        self._rows += 1

    @property
    def value(self) -> tuple[int, str]:
        return self._rows, f"{self._sum % SUMS:064x}"


def counted(rows: Iterable[Row], into: Digest) -> Iterator[Row]:
    """The same rows, each added to the digest as it passes."""
    for row in rows:
        into.add(row)
        yield row


def _digest(rows: Iterable[Row]) -> tuple[int, str]:
    found = Digest()
    for row in rows:
        found.add(row)
    return found.value


def _names(table: Table) -> str:
    return ", ".join(f'"{column.name}"' for column in table.columns)


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch
