"""Events about canaries: releases on trial."""

from __future__ import annotations

from typing import ClassVar

from penstock.counting import count
from penstock.journal.event import Event, Reasoned, with_reason
from penstock.journal.run_events import OPERATOR

SHOWN = 12


class CanaryStarted(Event, frozen=True, omit_defaults=True):
    """A release performs a share of the pages, or of the sources, from now on."""

    kind: ClassVar[str] = "canary.started"
    by: ClassVar[str] = OPERATOR

    canary: int
    release: str
    share: str
    percent: float
    sources: int
    reason: str = ""

    def sentence(self) -> str:
        what = "pages of " if self.share == "pages" else ""
        share = f"{self.percent:g} % of {what}{count(self.sources, 'source')}"
        told = f"canary {self.canary}: release {self.release[:SHOWN]} performs {share}"
        return with_reason(told, self.reason)


class CanaryPassed(Reasoned, frozen=True, omit_defaults=True):
    """The guardrails of a canary were looked at with enough pages, and none was crossed."""

    kind: ClassVar[str] = "canary.passed"

    canary: int = 0

    def sentence(self) -> str:
        return with_reason(f"canary {self.canary} has passed", self.reason)


class CanaryWidened(Reasoned, frozen=True, omit_defaults=True):
    """The release of a canary performs all runs of its sources from now on."""

    kind: ClassVar[str] = "canary.widened"
    by: ClassVar[str] = OPERATOR

    canary: int = 0

    def sentence(self) -> str:
        return with_reason(
            f"canary {self.canary}: its release performs all of its sources", self.reason
        )


class CanaryStopped(Reasoned, frozen=True, omit_defaults=True):
    """A canary was stopped by an operator, a guardrail, a difference or an alert; it is being rolled back."""

    kind: ClassVar[str] = "canary.stopped"
    by: ClassVar[str] = "an operator; the leader, where a limit was crossed"

    canary: int = 0

    def sentence(self) -> str:
        return with_reason(f"canary {self.canary} is stopped", self.reason)


class CanaryRolledBack(Event, frozen=True, omit_defaults=True):
    """What a canary saved is undone, and the project's own files perform what it had left."""

    kind: ClassVar[str] = "canary.rolled_back"

    canary: int
    undone: int
    started: int

    def sentence(self) -> str:
        undone, started = count(self.undone, "run"), count(self.started, "run")
        return f"canary {self.canary} is rolled back: {undone} undone, {started} started instead"


class CanaryEnded(Reasoned, frozen=True, omit_defaults=True):
    """A canary was ended; what it saved stays."""

    kind: ClassVar[str] = "canary.ended"
    by: ClassVar[str] = OPERATOR

    canary: int = 0

    def sentence(self) -> str:
        return with_reason(f"canary {self.canary} is ended; its records stay", self.reason)


EVENTS: tuple[type[Event], ...] = (
    CanaryStarted,
    CanaryPassed,
    CanaryWidened,
    CanaryStopped,
    CanaryRolledBack,
    CanaryEnded,
)
