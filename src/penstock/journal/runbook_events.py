"""Events about runbooks: who follows which, and each step."""

from __future__ import annotations

from typing import ClassVar

from penstock.journal.event import Event, with_reason

OPERATOR = "an operator"


class RunbookEvent(Event, frozen=True, omit_defaults=True):
    """`target` is the source that the runbook is followed for; empty for the whole project."""

    by: ClassVar[str] = OPERATOR

    runbook: str
    target: str = ""
    execution: int = 0

    @property
    def _which(self) -> str:
        return f"{self.runbook} {self.target}".rstrip()


class RunbookStarted(RunbookEvent, frozen=True, omit_defaults=True):
    """Somebody begins to follow a runbook."""

    kind: ClassVar[str] = "runbook.started"

    def sentence(self) -> str:
        return self._which


class RunbookStep(RunbookEvent, frozen=True, omit_defaults=True):
    """`summary` is what came of the step; `taken_at` is set if it was recorded later than it was taken."""

    step: str = ""
    summary: str = ""
    reason: str = ""
    taken_at: float = 0.0

    def sentence(self) -> str:
        came_of = f": {self.summary}" if self.summary else ""
        why = f" ({self.reason})" if self.reason else ""
        return f"{self._which}, {self.step}{came_of}{why}"


class RunbookStepDone(RunbookStep, frozen=True, omit_defaults=True):
    """A step of a runbook was taken."""

    kind: ClassVar[str] = "runbook.step_done"


class RunbookStepSkipped(RunbookStep, frozen=True, omit_defaults=True):
    """A step of a runbook was left out."""

    kind: ClassVar[str] = "runbook.step_skipped"


class RunbookEnded(RunbookEvent, frozen=True, omit_defaults=True):
    """A runbook was followed to its end (`recovered`), or given up (`abandoned`)."""

    kind: ClassVar[str] = "runbook.ended"

    outcome: str = ""
    reason: str = ""

    def sentence(self) -> str:
        return with_reason(f"{self._which} {self.outcome}", self.reason)


EVENTS: tuple[type[Event], ...] = (
    RunbookStarted,
    RunbookStepDone,
    RunbookStepSkipped,
    RunbookEnded,
)
