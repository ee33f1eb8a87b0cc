"""What a page came to in lines, for a terminal and for pytest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from penstock.app.views.golden import GoldenCaseView
from penstock.app.views.replays import ChangeView

LONGEST_VALUE = 120
MOST_LINES = 60
SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def case_lines(case: GoldenCaseView) -> list[str]:
    """The page, and below it what is wrong or different; each value as it was approved and as it is now."""
    lines = list(_lines(case))
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"  and {more} more lines"]


def _lines(case: GoldenCaseView) -> Iterator[str]:
    yield f"{case.url}  (case {case.case})"
    for problem in case.problems:
        yield f"  {problem}"
    for line in case.traceback.splitlines():
        yield f"    {line}"
    for change in case.changes:
        yield f"  {SIGNS[change.kind]} {change.collection} {change.key}: {_kind(change)}"
        yield from _fields(change)
    for shift in case.shifts:
        reason = f" ({shift.reason})" if shift.reason else ""
        yield f"  {SIGNS[shift.change]} {shift.what} {shift.key}{reason}"


def _kind(change: ChangeView) -> str:
    return {
        "added": "was not approved",
        "removed": "is missing",
        "changed": "differs",
    }[change.kind]


def _fields(change: ChangeView) -> Iterator[str]:
    for field in change.fields:
        if change.kind != "added" and field.before is not msgspec.UNSET:
            yield f"      - {field.field}: {_value(field.before)}"
        if change.kind != "removed" and field.after is not msgspec.UNSET:
            yield f"      + {field.field}: {_value(field.after)}"
    if change.kind == "changed" and change.score_before != change.score_after:
        yield f"      - (score): {_value(change.score_before)}"
        yield f"      + (score): {_value(change.score_after)}"


def _value(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= LONGEST_VALUE else f"{shown[:LONGEST_VALUE]}…"
