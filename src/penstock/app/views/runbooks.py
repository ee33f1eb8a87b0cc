"""Runbooks as front ends see them: what there is, how one stands now, and what a step came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Hidden, Time, View
from penstock.errors import Remedy
from penstock.runbooks.signals import SIGNALS, words_of

if TYPE_CHECKING:
    from penstock.runbooks.progress import Standing
    from penstock.runbooks.runbook import Check, Reading, Runbook
    from penstock.store.runbooks import ExecutionRow, StepRow


class RunbookView(View, frozen=True, kw_only=True):
    """A runbook. `scope` says whether it needs a source, takes one (`any`), or is about the project.

    `rules` are the alerts that lead here, `steps` the names of its steps.
    """

    name: str = msgspec.field(name="runbook")
    title: str
    scope: str
    about: str
    rules: list[str]
    steps: list[str]


class RunbookSignalView(View, frozen=True, kw_only=True):
    """A signal now. `is_raised`: it shows the fault. `value` is null where nothing is known."""

    name: str = msgspec.field(name="signal")
    title: str
    means: str
    value: bool | int | float | str | None
    words: str
    text: str
    examples: list[str]
    is_raised: bool
    raised_when: str | None


class StepView(View, frozen=True, kw_only=True):
    """A step now: `done`, `skipped`, `settled` (by itself), `next`, `later` or `not needed`.

    `verb` is what an `act` performs, `on` what it performs it on. `remedies` are the verbs that help with a
    step that a person takes. `missing` says what keeps it from being needed.
    """

    number: int
    name: str = msgspec.field(name="step")
    part: str
    kind: str
    title: str
    why: str
    state: str
    verb: str | None
    on: str | int | None
    options: dict[str, str]
    shows: list[str]
    missing: list[str]
    at: Time | None
    actor: str | None
    reason: str | None
    summary: str | None
    remedies: Hidden[tuple[Remedy, ...]]


class ExecutionView(View, frozen=True, kw_only=True):
    """One time that somebody followed a runbook: `recovered` or `abandoned` when it has ended."""

    id: int = msgspec.field(name="execution")
    runbook: str
    source: str | None
    started_at: Time
    actor: str
    ended_at: Time | None
    outcome: str


class RunbookState(View, frozen=True, kw_only=True):
    """A runbook on live data. `is_raised`: the fault is there. `next` is the step that applies."""

    name: str = msgspec.field(name="runbook")
    title: str
    about: str
    source: str | None
    is_raised: bool
    is_recorded: bool
    signals: list[RunbookSignalView]
    steps: list[StepView]
    next: str | None
    execution: ExecutionView | None

    def step(self, name: str) -> StepView:
        return next(each for each in self.steps if each.name == name)


class StepResult(View, frozen=True, kw_only=True):
    """What a step would do (`is_done` is false) or did. `undo` is the act that undoes it.

    `run` has to be worked on.
    `is_recorded` is false if the database is away: the step is recorded when it is back.
    """

    runbook: str
    source: str | None
    step: str
    is_done: bool
    text: str
    details: dict[str, Any]
    run_id: int | None = msgspec.field(name="run")
    undo: Remedy | None
    ended: str | None
    is_recorded: bool


def runbook_view(runbook: Runbook, rules: list[str]) -> RunbookView:
    return RunbookView(
        name=runbook.name,
        title=runbook.title,
        scope=runbook.scope,
        about=runbook.about,
        rules=rules,
        steps=[step.name for step in runbook.steps],
    )


def check_words(check: Check) -> str:
    """`Failed pages > 20 %`, `there is no active run`."""
    title, unit = SIGNALS[check.signal].title, SIGNALS[check.signal].unit
    if check.value is None and unit == "yes or no":
        return f"{title} {check.comparison} unknown"
    if check.value is None:
        article = "no" if check.comparison == "is" else "an" if title[0] in "AEIOU" else "a"
        return f"there is {article} {title.lower()}"
    return f"{title} {check.comparison} {words_of(check.signal, check.value)}"


def signal_view(
    name: str, reading: Reading, checks: list[Check], is_raised: bool
) -> RunbookSignalView:
    signal = SIGNALS[name]
    return RunbookSignalView(
        name=name,
        title=signal.title,
        means=signal.means,
        value=reading.value,
        words=words_of(name, reading.value),
        text=reading.text,
        examples=list(reading.examples),
        is_raised=is_raised,
        raised_when=" or ".join(map(check_words, checks)) or None,
    )


def step_view(
    number: int, found: Standing, recorded: StepRow | None, on: str | int | None
) -> StepView:
    step = found.step
    return StepView(
        number=number,
        name=step.name,
        part=step.part,
        kind=step.kind,
        title=step.title,
        why=step.why,
        state=found.state,
        verb=step.verb or None,
        on=on,
        options=dict(step.options),
        shows=list(step.shows),
        missing=[check_words(check) for check in found.missing],
        at=None if recorded is None else recorded.at,
        actor=None if recorded is None else recorded.actor,
        reason=None if recorded is None else recorded.reason,
        summary=None if recorded is None else recorded.summary,
        remedies=tuple(Remedy(verb, on) for verb in (step.verb, *step.verbs) if verb),
    )


def execution_view(row: ExecutionRow) -> ExecutionView:
    known = msgspec.structs.asdict(row)
    known["source"] = known.pop("target") or None
    return ExecutionView(**known)
