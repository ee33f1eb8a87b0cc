"""Schedules as front ends see them: in a list, to come, changed, and whole with their ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from penstock.app.views.signals import QueuedSignalView
from penstock.app.views.sources import BreachView
from penstock.app.views.view import Hidden, Time, View

if TYPE_CHECKING:
    from penstock.store.cadences import CadenceRow
    from penstock.store.schedule_rows import TickCount, TickRow, VersionRow

OUTCOMES = ("fired", "joined", "missed", "skipped", "denied")


class CadenceView(View, frozen=True, kw_only=True):
    """The class of a source whose cadence is `auto`: since when, why, and what it was before.

    `proposed` is the class that it would have if it were moved by itself.
    """

    source: str
    level: str = msgspec.field(name="class")
    since: Time
    before: str | None
    proposed: str | None
    reason: str
    steps: int = msgspec.field(name="runs_in_a_row")
    last_run_id: int | None = msgspec.field(name="last_run")


class ScheduleView(View, frozen=True, kw_only=True):
    """A schedule: its policy in words, its next tick, and the outcome of its last one.

    `is_planned` is False for a schedule of penstock.yaml that no scheduler has read yet: it has no version
    and no ticks. `next_due_at` is null where no time decides (a signal, files, another source).
    `hours_begin_at` is set if the next tick is outside the schedule's hours, where it starts nothing.
    `overdue_s` is not 0 if a tick waits and no scheduler runs. `is_waiting`: a tick is due and waits, for
    `waits_for_run` to end or for missed ticks before it. `last_run`, `last_due_at`, `last_state` and
    `lateness_s` are of the last tick that started a run, `last_tick_at`, `last_outcome` and `last_reason` of
    the last tick. `warning` says that its calendar is about to end.
    """

    source: str
    name: str = msgspec.field(name="schedule")
    policy: str
    kind: str
    version: int | None
    is_planned: bool
    next_due_at: Time | None
    hours_begin_at: Time | None
    overdue_s: float
    is_waiting: bool
    waits_for_run: int | None
    last_due_at: Time | None
    last_run_id: int | None = msgspec.field(name="last_run")
    last_state: str | None
    lateness_s: float | None
    last_tick_at: Time | None
    last_outcome: str | None
    last_reason: str
    warning: str


class UpcomingTick(View, frozen=True, kw_only=True):
    """A tick to come, and the kind of run it starts. `is_denied`: outside its hours, it starts nothing."""

    at: Time
    source: str
    schedule: str
    kind: str
    is_denied: bool


class KeyChange(View, frozen=True, kw_only=True):
    """One key of a schedule in penstock.yaml that has another value; null is its default."""

    key: str
    before: Any
    after: Any


class ScheduleChange(View, frozen=True, kw_only=True):
    """A schedule that penstock.yaml has and the scheduler has not, or has otherwise, or the other way round.

    `before` is the policy in force, `after` that of penstock.yaml, in words; null where there is none.
    """

    source: str
    name: str = msgspec.field(name="schedule")
    change: Literal["added", "changed", "removed"]
    before: str | None
    after: str | None
    keys: list[KeyChange]


class ScheduleVersionView(View, frozen=True, kw_only=True):
    """One version of a schedule: since when, who changed it, and how many ticks had which outcome.

    `definition` has the keys that differ from their defaults; it is null where the schedule was removed.
    """

    source: str
    name: str = msgspec.field(name="schedule")
    version: int
    since: Time
    policy: str
    definition: dict[str, Any] | None
    actor: str
    ticks: dict[str, int]


class TickView(View, frozen=True, kw_only=True):
    """The outcome of one tick (`fired`, `joined`, `missed`, `skipped` or `denied`), and why.

    `state` is that of the run that it started or joined; `at` is when that was decided, `lateness_s` how long
    after it was due.
    """

    due_at: Time
    outcome: str
    run_id: int | None = msgspec.field(name="run")
    state: str | None
    at: Time
    lateness_s: float
    version: int
    reason: str


class TickCountView(View, frozen=True, kw_only=True):
    """How many ticks of a version had this outcome, from the first to the last of them.

    Not in the JSON: how many of them were missed, as a late one may have fired all the same.
    """

    version: int
    outcome: str
    ticks: int
    first_at: Time
    last_at: Time
    missed: Hidden[int]
    first_missed_at: Hidden[Time | None]
    last_missed_at: Hidden[Time | None]


class WatchedFolder(View, frozen=True, kw_only=True):
    """Where a schedule looks for files: how many have landed, and whether the folder is there.

    `is_folder`: its pattern names a folder and not what is in it, so that nothing ever lands.
    """

    pattern: str
    folder: str
    landed: int
    is_there: bool
    is_folder: bool


class ScheduleDetail(ScheduleView, frozen=True, kw_only=True):
    """A schedule, whole: the signals in its queue, its next and last ticks, and how many had which outcome.

    `announced` are the times that steps have announced for it, `coming` its next starts. Not in the JSON:
    since when this version holds, the class of `cadence: auto`, how near an announced time counts, whether
    the schedule has hours and when they begin (None is now), the folder it watches, and how many signals are
    in its queue in all.
    """

    queue: list[QueuedSignalView]
    announced: list[Time]
    coming: list[Time]
    ticks: list[TickView]
    counts: list[TickCountView]
    changed_at: Hidden[Time]
    cadence: Hidden[CadenceView | None]
    near_s: Hidden[float | None]
    has_hours: Hidden[bool]
    opens_at: Hidden[Time | None]
    watched: Hidden[WatchedFolder | None]
    queued: Hidden[int]


class PromisesView(View, frozen=True, kw_only=True):
    """What a source's configuration promises: a good run at least every `freshness_s`, no run longer than
    `deadline_s`, its schema verified every `schema_freshness_s`. Null is no promise."""

    freshness_s: float | None
    deadline_s: float | None
    schema_freshness_s: float | None


class SchedulesExplained(View, frozen=True, kw_only=True):
    """All schedules of a source that are in force, what its configuration promises, and when that was broken.

    Not in the JSON: whether penstock.yaml has schedules of the source, in force or not.
    """

    source: str
    schedules: list[ScheduleDetail]
    promises: PromisesView
    schema_verified_at: Time | None
    breaches: list[BreachView]
    is_scheduled: Hidden[bool]


def cadence_view(row: CadenceRow) -> CadenceView:
    return CadenceView(
        source=row.source,
        level=row.level,
        since=row.since,
        before=row.before or None,
        proposed=row.proposed or None,
        reason=row.reason,
        steps=row.steps,
        last_run_id=row.last_run_id or None,
    )


def tick_view(row: TickRow) -> TickView:
    return TickView(
        due_at=row.due_at,
        outcome=row.outcome,
        run_id=row.run_id,
        state=row.state,
        at=row.at,
        lateness_s=round(row.at - row.due_at, 3),
        version=row.version,
        reason=row.reason,
    )


def tick_count_view(row: TickCount) -> TickCountView:
    told = msgspec.structs.asdict(row)
    del told["schedule"]
    return TickCountView(**told)


def version_view(source: str, row: VersionRow, ticks: dict[str, int]) -> ScheduleVersionView:
    return ScheduleVersionView(
        source=source,
        name=row.name,
        version=row.version,
        since=row.at,
        policy=row.words,
        definition=msgspec.json.decode(row.definition) if row.definition else None,
        actor=row.actor,
        ticks=ticks,
    )
