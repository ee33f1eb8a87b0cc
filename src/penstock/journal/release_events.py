"""Events about releases: which one an environment runs, and workers that run something else."""

from __future__ import annotations

from typing import ClassVar

from penstock.journal.event import Event, with_reason

OPERATOR = "an operator"
SHOWN = 12


class ReleaseEvent(Event, frozen=True, omit_defaults=True, kw_only=True):
    """`release` is the whole id, which is the hash of the release's content."""

    by: ClassVar[str] = OPERATOR

    release: str
    reason: str = ""

    def sentence(self) -> str:
        return with_reason(self.release[:SHOWN], self.reason)


class ReleaseCreated(ReleaseEvent, frozen=True, omit_defaults=True, kw_only=True):
    """A release was made of the project's folder, and the environment runs it instead of `before`."""

    kind: ClassVar[str] = "release.created"

    before: str = ""


class ReleasePromoted(ReleaseEvent, frozen=True, omit_defaults=True, kw_only=True):
    """The environment runs a release that came from another one, instead of `before`."""

    kind: ClassVar[str] = "release.promoted"

    before: str = ""
    from_environment: str = ""
    approved_by: tuple[str, ...] = ()

    def sentence(self) -> str:
        approved = f", approved by {', '.join(self.approved_by)}" if self.approved_by else ""
        text = f"{self.release[:SHOWN]} from {self.from_environment}{approved}"
        return with_reason(text, self.reason)


class ReleaseFetched(ReleaseEvent, frozen=True, omit_defaults=True, kw_only=True):
    """A release was copied here from another environment, to be tried; nothing runs it by that."""

    kind: ClassVar[str] = "release.fetched"

    from_environment: str = ""

    def sentence(self) -> str:
        return with_reason(f"{self.release[:SHOWN]} from {self.from_environment}", self.reason)


class ReleaseRolledBack(ReleaseEvent, frozen=True, omit_defaults=True, kw_only=True):
    """The environment runs `release` again, which it had run before `before`."""

    kind: ClassVar[str] = "release.rolled_back"

    before: str = ""

    def sentence(self) -> str:
        return with_reason(f"from {self.before[:SHOWN]} to {self.release[:SHOWN]}", self.reason)


class ReleaseApproved(ReleaseEvent, frozen=True, omit_defaults=True, kw_only=True):
    """Somebody approves that a release comes into this environment."""

    kind: ClassVar[str] = "release.approved"


class WorkersDiffer(Event, frozen=True, omit_defaults=True, kw_only=True):
    """The folder that workers of a host were started in is not the release of their environment.

    `parts` are some of what differs. In a guarded environment they do not work.
    """

    kind: ClassVar[str] = "worker.other_release"
    by: ClassVar[str] = "a supervisor"

    environment: str
    release: str = ""
    parts: tuple[str, ...] = ()
    is_refused: bool = False

    def sentence(self) -> str:
        end = "; refused" if self.is_refused else ""
        return f"not release {self.release[:SHOWN] or 'any'}: {', '.join(self.parts)}{end}"


EVENTS: tuple[type[Event], ...] = (
    ReleaseCreated,
    ReleasePromoted,
    ReleaseFetched,
    ReleaseRolledBack,
    ReleaseApproved,
    WorkersDiffer,
)
