"""One statement that reads, on a connection of its own that can't write.

Statements that were written for Postgres are understood as far as the views of the SQL interface need it.
"""

from __future__ import annotations

import re
import time
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from penstock.errors import UsageError
from penstock.store.sql_answer import LONGEST_S, SqlAnswer

STEPS = 10_000
BUSY_MS = 5_000
# As the views write times.
MOMENT = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now'{})"
_WORDS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
    | (?P<now>\bnow\s*\(\s*\)|\bcurrent_timestamp\b)
      (?:\s*(?P<sign>[+-])\s*interval\s*'(?P<span>[^']*)')?
    | \bjsonb(?=_array_length\s*\()""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_PART = re.compile(r"\s*(\d+)\s*(second|minute|hour|day|week|month|year)s?\s*", re.IGNORECASE)
_SPAN = re.compile(rf"(?:{_PART.pattern})+", re.IGNORECASE)
DAYS_OF_A_WEEK = 7


def read_sql(file: Path, statement: str, most: int) -> SqlAnswer:
    """The first rows of its answer."""
    until = time.monotonic() + LONGEST_S
    columns: list[tuple[str, ...]] = []

    def trace(cursor: apsw.Cursor, text: str, values: Any) -> bool:
        columns.append(tuple(each[0] for each in cursor.get_description()))
        return len(columns) == 1

    try:
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(BUSY_MS)
            connection.set_progress_handler(lambda: time.monotonic() > until, STEPS)
            connection.authorizer = _without_other_files
            cursor = connection.cursor()
            cursor.exec_trace = trace
            rows = tuple(islice(cursor.execute(in_sqlite(statement)), most + 1))
        finally:
            connection.close(True)
    except apsw.ExecTraceAbort:
        raise UsageError("one statement at a time, please", code="bad_sql") from None
    except apsw.Error as error:
        raise UsageError(f"SQLite: {error}", code="bad_sql") from None
    return SqlAnswer(columns[0] if columns else (), rows[:most], len(rows) > most)


def in_sqlite(statement: str) -> str:
    """The same statement in SQLite's words: the time now, intervals from it, and lengths of arrays."""
    return _WORDS.sub(_word, statement)


def _word(found: re.Match[str]) -> str:
    if found["now"] is None:
        return "json" if found[0].lower() == "jsonb" else found[0]
    if found["span"] is None:
        return MOMENT.format("")
    if not _SPAN.fullmatch(found["span"]):
        raise UsageError(
            f"interval {found['span']!r:.40} is not understood on SQLite",
            "write it like '30 days' or '1 hour 30 minutes'",
            code="bad_sql",
        )
    parts = [_modifier(found["sign"], *part) for part in _PART.findall(found["span"])]
    return MOMENT.format("".join(f", '{part}'" for part in parts))


def _modifier(sign: str, number: str, unit: str) -> str:
    if unit.lower() == "week":
        return f"{sign}{int(number) * DAYS_OF_A_WEEK} days"
    return f"{sign}{int(number)} {unit.lower()}s"


def _without_other_files(code: int, *_: Any) -> int:
    return apsw.SQLITE_DENY if code == apsw.SQLITE_ATTACH else apsw.SQLITE_OK
