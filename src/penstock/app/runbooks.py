"""Runbooks: what to do about a fault, followed step by step on live data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from penstock.alerts.rules import RULES
from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, page_within, place_of, size_of
from penstock.app.runbook_acts import ACTS, Call, Came
from penstock.app.signal_readings import is_reachable, read_signals
from penstock.app.unrecorded_steps import UnrecordedStep, UnrecordedSteps
from penstock.app.views.runbooks import (
    ExecutionView,
    RunbookState,
    RunbookView,
    StepResult,
    execution_view,
    runbook_view,
    signal_view,
    step_view,
)
from penstock.app.views.view import Page
from penstock.errors import Refused, Remedy, UsageError, nearest
from penstock.runbooks.library import RUNBOOKS
from penstock.runbooks.progress import Recorded, Standing, next_step, raised, standings
from penstock.runbooks.runbook import UNKNOWN, Readings, Runbook, Step
from penstock.settings import normalise_source
from penstock.store.runbooks import ExecutionRow, NewStep, StepRow

CONFIRM = "confirm"


class Runbooks(Noun):
    """The runbooks. Whoever follows one can leave at any step; others see it, and go on."""

    def list(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[RunbookView]:
        """Every runbook, by name."""
        found = sorted(RUNBOOKS.values(), key=lambda each: each.name)
        return page_within(
            found, cursor, limit, lambda each: runbook_view(each, _rules(each)), _name_of, str
        )

    def each(self) -> Iterator[RunbookView]:
        """Iterate over all of them."""
        return each_item(lambda cursor, limit: self.list(cursor=cursor, limit=limit))

    def get(self, runbook: str) -> RunbookView:
        """One runbook."""
        found = _runbook(runbook)
        return runbook_view(found, _rules(found))

    def executions(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[ExecutionView]:
        """Who followed which runbook, newest first; those that have not ended can be continued."""
        size = size_of(limit)
        rows = self._store.runbooks.executions(size + 1, place_of(cursor, int))
        return page_of(rows, size, execution_view, lambda row: row.id)

    def state(self, runbook: str, source: str | None = None) -> RunbookState:
        """A runbook on live data: its signals now, the state of each step, and the one that is next."""
        return _Followed(self, _runbook(runbook), source).state()

    def do(
        self,
        runbook: str,
        step: str,
        source: str | None = None,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> StepResult:
        """Take a step of a runbook: perform its verb, or say that you have done what it asks for.

        With `dry_run`, only say what it would do. A step that does not apply now is refused. The first step
        begins an execution, which `confirm` or `end` ends.
        """
        followed = _Followed(self, _runbook(runbook), source)
        return followed.do(step, dry_run, who(actor), reason)

    def skip(
        self,
        runbook: str,
        step: str,
        source: str | None = None,
        *,
        actor: str | None = None,
        reason: str = "",
    ) -> StepResult:
        """Leave out a step; the next one that applies is offered."""
        followed = _Followed(self, _runbook(runbook), source)
        return followed.skip(step, who(actor), reason)

    def end(
        self,
        runbook: str,
        source: str | None = None,
        *,
        actor: str | None = None,
        reason: str = "",
    ) -> ExecutionView:
        """Stop following a runbook before its end. What its steps did stays."""
        followed = _Followed(self, _runbook(runbook), source)
        return followed.end(who(actor), reason)


class _Followed:
    """One runbook for one target, at one moment."""

    def __init__(self, noun: Runbooks, runbook: Runbook, source: str | None) -> None:
        self._project = noun._project
        self._runbook = runbook
        self._source = self._target(source)
        self._unrecorded = UnrecordedSteps(self._project.settings.root)
        self._is_there = is_reachable(self._project)
        self._execution: ExecutionRow | None = None
        self._recorded: Sequence[StepRow] = ()
        if self._is_there:
            self._execution = self._project.connection.runbooks.open(runbook.name, self._key)
        self._recorded = self._steps()
        self._readings = self._read()
        self._standings = standings(runbook, self._readings, self._outcomes)
        if not (self._recorded or raised(runbook.detects, self._readings)):
            self._standings = [replace(each, state="not needed") for each in self._standings]

    def state(self) -> RunbookState:
        signs = raised(self._runbook.detects, self._readings)
        names = {check.signal for check in signs}
        steps = {row.step: row for row in self._recorded}
        execution, following = self._execution, next_step(self._standings)
        return RunbookState(
            name=self._runbook.name,
            title=self._runbook.title,
            about=self._runbook.about,
            source=self._source,
            is_raised=bool(signs),
            is_recorded=self._is_there,
            signals=[
                signal_view(
                    name,
                    self._readings.get(name, UNKNOWN),
                    [check for check in self._runbook.detects if check.signal == name],
                    name in names,
                )
                for name in self._runbook.signals()
            ],
            steps=[
                step_view(number, each, steps.get(each.step.name), self._on(each.step))
                for number, each in enumerate(self._standings, 1)
            ],
            next=None if following is None else following.name,
            execution=None if execution is None else execution_view(execution),
        )

    def do(self, name: str, dry_run: bool, actor: str, reason: str) -> StepResult:
        found = self._applying(name)
        step = found.step
        call = Call(self._project, self._source, self._on(step), dict(step.options), actor, reason)
        act = ACTS.get(step.verb)
        if dry_run:
            came = Came(step.title) if act is None else act.preview(call)
            return self._result(step, came, is_done=False)
        came = Came("") if act is None else act.perform(call)
        new = NewStep(
            step=name,
            outcome="done",
            actor=actor,
            reason=reason,
            summary=came.text,
            findings={**dict(step.finds), **came.findings},
        )
        self._record(new)
        ended = step.part == CONFIRM and self._ended("recovered", actor, reason)
        return self._result(step, came, is_done=True, ended="recovered" if ended else None)

    def skip(self, name: str, actor: str, reason: str) -> StepResult:
        step = self._step(name)
        found = dict(step.finds)
        self._record(
            NewStep(step=name, outcome="skipped", actor=actor, reason=reason, findings=found)
        )
        return self._result(step, Came("skipped"), is_done=True)

    def end(self, actor: str, reason: str) -> ExecutionView:
        if self._is_there:
            self._write_down()
            self._execution = self._project.connection.runbooks.open(self._runbook.name, self._key)
        execution = self._execution
        if execution is None:
            about = f" for {self._source}" if self._source else ""
            raise Refused(
                f"runbook {self._runbook.name}{about} is not in progress",
                code="runbook_not_started",
            )
        self._ended("abandoned", actor, reason)
        return execution_view(execution)

    def _target(self, source: str | None) -> str | None:
        """The source that is meant, which need not be known to a database that is away."""
        runbook, known = self._runbook, self._project.settings.sources
        if source is None:
            if runbook.scope == "source":
                raise UsageError(
                    f"{runbook.name} is about one source; name it",
                    "sources: " + ", ".join(sorted(known)) if known else "",
                    code="no_target",
                )
            return None
        if runbook.scope == "project":
            raise UsageError(
                f"{runbook.name} is about the whole project, and takes no source",
                code="target_not_allowed",
            )
        key = normalise_source(source)
        return key if key in known else self._project.source_key(source)

    @property
    def _key(self) -> str:
        return self._source or ""

    @property
    def _outcomes(self) -> dict[str, Recorded]:
        return {row.step: row.outcome for row in self._recorded}

    def _steps(self) -> Sequence[StepRow]:
        """What is recorded, and what waits to be."""
        execution, found = self._execution, []
        if execution is not None:
            found = self._project.connection.runbooks.steps(execution.id)
        for new in self._unrecorded.of(self._runbook.name, self._key):
            found.append(
                StepRow(
                    step=new.step,
                    outcome=new.outcome,
                    summary=new.summary,
                    findings=new.findings,
                    at=new.at or 0.0,
                    actor=new.actor,
                    reason=new.reason,
                )
            )
        return found

    def _read(self) -> Readings:
        found: dict[str, Any] = {}
        for row in self._recorded:
            found |= row.findings
        return read_signals(self._project, self._runbook, self._source, found)

    def _on(self, step: Step) -> Any:
        """What a step acts on: the value of a signal, or the source."""
        return self._readings.get(step.takes, UNKNOWN).value if step.takes else self._source

    def _step(self, name: str) -> Step:
        step = self._runbook.step(name)
        if step is None:
            known = [each.name for each in self._runbook.steps]
            raise UsageError(
                f"{self._runbook.name} has no step {name!r}", nearest(name, known), code="no_step"
            )
        return step

    def _applying(self, name: str) -> Standing:
        """A step that may be taken now. One that is done may be taken again while its conditions hold."""
        self._step(name)
        fresh = standings(self._runbook, self._readings, {})
        found = next(each for each in fresh if each.step.name == name)
        if found.state in ("next", "later"):
            return found
        following = next_step(self._standings)
        raise Refused(
            f"the step {name} does not apply now",
            ""
            if following is None
            else f"the step that applies is {following.name}: {following.title}",
            code="step_not_applicable",
            remedy=None if following is not None else Remedy("runbooks.state", self._runbook.name),
        )

    def _record(self, new: NewStep) -> None:
        if self._is_there:
            self._write_down()
            self._execution = self._project.connection.runbooks.record(
                self._runbook.name, self._key, new
            )
            return
        taken = replace(new, at=self._project.clock.now())
        self._unrecorded.add(UnrecordedStep(self._runbook.name, self._key, taken))

    def _write_down(self) -> None:
        """Record what was taken while the database was away."""
        waiting = list(self._unrecorded)
        for each in waiting:
            self._project.connection.runbooks.record(each.runbook, each.target, each.step)
        if waiting:
            self._unrecorded.remove()

    def _ended(self, outcome: Any, actor: str, reason: str) -> bool:
        if self._execution is None:
            return False
        return self._project.connection.runbooks.end(
            self._execution, outcome, actor=actor, reason=reason
        )

    def _result(
        self, step: Step, came: Came, *, is_done: bool, ended: str | None = None
    ) -> StepResult:
        return StepResult(
            runbook=self._runbook.name,
            source=self._source,
            step=step.name,
            is_done=is_done,
            text=came.text,
            details=came.figures,
            run_id=came.run_id,
            undo=came.undo,
            ended=ended,
            is_recorded=self._is_there,
        )


def verb_of_step(runbook: str, step: str) -> str:
    """The verb that a step performs; empty if it performs none."""
    found = _runbook(runbook).step(step)
    return "" if found is None else found.verb


def _runbook(name: str) -> Runbook:
    found = RUNBOOKS.get(name)
    if found is None:
        raise UsageError(
            f"there is no runbook {name!r}",
            nearest(name, RUNBOOKS),
            code="no_runbook",
            remedy=Remedy("runbooks.list"),
        )
    return found


def _name_of(runbook: Runbook) -> str:
    return runbook.name


def _rules(runbook: Runbook) -> list[str]:
    """The alerts that lead to a runbook."""
    return [rule.name for rule in RULES.values() if rule.runbook == runbook.name]
