"""A run in numbers while it goes on, and how a service has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from penstock.app.views.runs import counts_of, seconds_of
from penstock.app.views.view import Content, View
from penstock.jobs.windows import expected_units

if TYPE_CHECKING:
    from penstock.engine.leader.activity import Line
    from penstock.store.rows import RunRow


class RunReport(View, frozen=True):
    """One run in numbers: what `penstock run` shows while it goes on and when it has ended."""

    run: int
    source: str
    kind: str
    state: str
    seconds: float
    counts: dict[str, int]
    # Why it ended as it did; of a probe, its verdict.
    end_reason: Content[str] = ""
    # Of a backfill that goes on: how many units it will have when all are planned; 0 if nobody knows.
    expected: int = 0
    requests: int = 0
    # Of a run that has no pages: how far it has come, as JSON; empty if its source has no checkpoint.
    cursor: str = ""


class ActivityView(View, frozen=True, kw_only=True):
    """One thing that happened in a service: a line for a person, and what a program needs to know of it."""

    event: str
    text: str
    level: str
    about: Mapping[str, Any]


class ServiceEnd(View, frozen=True, kw_only=True):
    """How a service ended, and how many runs ended meanwhile, by state.

    `idle`: nothing was left to do; `stopped`: somebody stopped it; `code_changed`: start the process again to
    load the new code.
    """

    reason: Literal["idle", "stopped", "code_changed"]
    ended: Mapping[str, int] = msgspec.field(default_factory=dict)


def run_report(row: RunRow, now: float, cursor: str = "") -> RunReport:
    expected = 0 if row.is_ended else expected_units(row.kind, row.options)
    return RunReport(
        *(row.id, row.source, row.kind, row.state, seconds_of(row, now), counts_of(row)),
        *(row.end_reason, expected, row.requests, cursor),
    )


def activity_view(line: Line) -> ActivityView:
    return ActivityView(event=line.event, text=line.text, level=line.level, about=line.about)
