"""Columns: which types the values of each have, counted as they are read."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from penstock.counting import count

MOST_COLUMNS = 200
MOST_TABLES = 50
MOST_TOLD = 20
_VALUE = re.compile(
    r"(?P<empty>)|(?P<integer>[+-]?(?:0|[1-9][0-9]{0,17}))"
    r"|(?P<number>[+-]?(?:[0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?)"
    r"|(?P<boolean>(?i:true|false))|(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"|(?P<datetime>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{4,18}(?:Z|[+-][0-9:]{4,6})?)"
)
_ZERO = re.compile(r"[+-]?0[0-9]")


class Report(msgspec.Struct):
    """What a table has: rows, rejected ones, and for each column how many values of each type."""

    rows: int = 0
    rejected: int = 0
    columns: dict[str, dict[str, int]] = {}

    def add(self, data: dict[str, Any]) -> None:
        self.rows += 1
        for name, value in data.items():
            counts = self.columns.get(name)
            if counts is None:
                if len(self.columns) >= MOST_COLUMNS:
                    continue
                counts = self.columns[name] = {}
            kind = type_of(value)
            counts[kind] = counts.get(kind, 0) + 1

    def types(self) -> dict[str, str]:
        """The narrowest type that holds all values of each column."""
        return {name: narrowest(counts) for name, counts in self.columns.items()}


def type_of(value: Any) -> str:
    if isinstance(value, str):
        if len(value) > 64:
            return "text"
        found = _VALUE.fullmatch(value)
        kind = (found and found.lastgroup) or ("empty" if not value else "text")
        # A number with a zero before it is a code, and would be another one as a number.
        return "text" if kind == "number" and _ZERO.match(value) and "." not in value else kind
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "list" if isinstance(value, list) else "object"


def narrowest(counts: dict[str, int]) -> str:
    kinds = set(counts) - {"empty"}
    if not kinds:
        return "empty"
    if kinds == {"integer", "number"}:
        found = "number"
    elif kinds == {"date", "datetime"}:
        found = "datetime"
    else:
        found = (
            kinds.pop() if len(kinds) == 1 else "mixed" if kinds & {"list", "object"} else "text"
        )
    return f"{found} or empty" if counts.get("empty") else found


def told(name: str, report: Report) -> str:
    """A line for the journal."""
    types = [f"{column} {kind}" for column, kind in report.types().items()]
    more = f" and {len(types) - MOST_TOLD} more columns" if len(types) > MOST_TOLD else ""
    rejected = f", {report.rejected:,} rejected" if report.rejected else ""
    return f"{name}: {count(report.rows, 'row')}{rejected}; {', '.join(types[:MOST_TOLD])}{more}"
