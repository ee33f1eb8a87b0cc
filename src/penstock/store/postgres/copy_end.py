"""A Postgres database as one end of a copy. Names of tables and columns are ours, never anybody's input."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from penstock.settings.cells import IDS_PER_CELL
from penstock.store.copy_progress import Row
from penstock.store.ledger import COUNTS
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.tables import TABLES, Column, Table

# Counters are read as they are now, with what was not folded into them yet.
RELATIONS = {
    "run_stage": "penstock.stage_count",
    "collection": """
        (SELECT name, sum(records)::bigint AS records FROM penstock.collection GROUP BY name) AS c""",
}
TALLIED = COUNTS
# Rows that came from another cell have that one's ids: ours go on behind our own.
_NUMBER = "coalesce((SELECT cell_number FROM penstock.project), 0)"
OF_OTHERS = f"(1 + {_NUMBER}) * {IDS_PER_CELL}"
# What only this database has, and a copy begins without.
OWN_TABLES = ("tally", "copy", "job_key")
KEY = ("run_id", "stage", "key", "id")


class PostgresEnd:
    """Rows are read in a stream and written by COPY."""

    def __init__(self, db: PostgresDatabase) -> None:
        self.db = db
        self.name = f"postgresql://{db.place}"

    def close(self) -> None:
        self.db.close()

    @property
    def schema(self) -> int:
        return self.db.plan().state.number

    def identity(self) -> str:
        return str(self.db.value("identity"))

    def version(self) -> object:
        """Whatever changes a project leaves a line in its journal, or a new row elsewhere."""
        return self.last_ids()

    def reading(self) -> AbstractContextManager[None]:
        return self.db.reading()

    def rows(self, table: Table, after: Sequence[Any]) -> Iterator[Row]:
        names = ", ".join(_expression(table, column) for column in table.columns)
        key = ", ".join(_quoted(name) for name in table.key)
        where = f"WHERE ({key}) > ({', '.join(['%s'] * len(after))})" if after else ""
        relation = RELATIONS.get(table.name, f"penstock.{table.name}")
        text = f"SELECT {names} FROM {relation} {where} ORDER BY {key}"  # noqa: S608
        return self.db.stream(text, after)

    def rows_where(self, table: Table, where: str, values: dict[str, Any]) -> Iterator[Row]:
        """The rows of a table that are so, in the order of their keys."""
        names = ", ".join(_expression(table, column) for column in table.columns)
        key = ", ".join(_quoted(name) for name in table.key)
        relation = RELATIONS.get(table.name, f"penstock.{table.name}")
        text = f"SELECT {names} FROM {relation} WHERE {where} ORDER BY {key}"  # noqa: S608
        return self.db.stream(text, values)

    def clear(self) -> None:
        names = [*(table.name for table in TABLES), *OWN_TABLES]
        self.db.run_sql(f"TRUNCATE {', '.join(f'penstock.{name}' for name in names)}")

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        names = ", ".join(_quoted(column.name) for column in table.columns)
        self.db.put(f"COPY penstock.{table.name} ({names}) FROM STDIN", rows)
        if table.name == "job":
            self._add_keys(table, rows)

    def _add_keys(self, table: Table, rows: Sequence[Row]) -> None:
        names = [column.name for column in table.columns]
        key = operator.itemgetter(*(names.index(name) for name in KEY))
        into = "COPY penstock.job_key (run_id, stage, key, job_id) FROM STDIN"
        self.db.put(into, [key(row) for row in rows])

    def last_ids(self) -> dict[str, int]:
        names = [table.name for table in TABLES if table.has_ids]
        return self.db.decoded("last_ids", dict[str, int], tables=names)

    def raise_ids(self, last_ids: dict[str, int]) -> None:
        for table in TABLES:
            if table.has_ids:
                [(largest,)] = self.db.run_sql(
                    f"SELECT coalesce(max(id), 0) FROM penstock.{table.name} "  # noqa: S608
                    f"WHERE id < {OF_OTHERS}"
                )
                wanted = max(largest, last_ids.get(table.name, 0))
                self.db.rows(
                    "raise_last_id", table=f'"{self.db.namespace}".{table.name}', id=wanted
                )


def _expression(table: Table, column: Column) -> str:
    """The column as SQLite would show it: it knows neither yes and no nor a zero below zero."""
    name = f"{table.name}.{_quoted(column.name)}" if table.name == "run" else _quoted(column.name)
    if table.name == "run" and column.name in TALLIED:
        # In one order: sums of fractions that were added in another one differ in their last bit.
        summed = f"sum(t.{column.name} ORDER BY t.id)"
        tallied = f"SELECT {summed} FROM penstock.tally AS t WHERE t.run_id = run.id"  # noqa: S608
        whole = "" if column.kind == "real" else "::bigint"
        return f"{name} + coalesce(({tallied}), 0){whole}"
    if column.kind == "real":
        return f"{name} + 0.0::double precision"
    return f"{name}::integer" if column.kind == "flag" else name


def _quoted(name: str) -> str:
    return f'"{name}"'
