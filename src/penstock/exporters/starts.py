"""Starts: what an export has to have started, and when; and what it can't say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.settings import ScheduleSettings, SourceSettings

# Set by the host or the runner itself: passing on an unset secret of such a name would empty it.
AMBIENT = frozenset(
    {"CI", "HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "TZ", "USER"}
)


class Inexpressible(Exception):
    """The target has no words for this; the message goes on after the target's name."""


@dataclass(frozen=True, slots=True)
class Start:
    """One schedule of one source."""

    source: str
    settings: ScheduleSettings

    @property
    def title(self) -> str:
        return f"{self.source}, schedule {self.settings.name}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a project stands on the host, and what its configuration takes from the environment."""

    project: str
    folder: str
    command: tuple[str, ...]
    variables: tuple[str, ...] = ()
    environment: str | None = None
    env_file: str = ""
    user: str = ""
    # Where it writes, beside its folder.
    writes: tuple[str, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(name for name in self.variables if name not in AMBIENT)


@dataclass(frozen=True, slots=True)
class Export:
    """Files by their names, what was left out, and what is started otherwise: a line each."""

    files: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return not self.left_out and not self.otherwise


def starts_of(sources: Iterable[SourceSettings]) -> list[Start]:
    return [Start(source.key, each) for source in sources for each in source.schedules]


def refuse_what_waits(settings: ScheduleSettings) -> None:
    """Only a scheduler of Penstock's own knows signals, files, sessions and other runs."""
    reasons = {
        "session": "knows no exchange's sessions",
        "watch": "does not watch files",
        "signal": "knows no signals",
        "after": "does not know when another source has run",
    }
    if settings.kind in reasons:
        raise Inexpressible(reasons[settings.kind])
    if settings.cadence == "auto":
        raise Inexpressible("does not move a source between classes")
    if settings.windows or settings.blackouts or settings.during:
        raise Inexpressible("would start it outside its hours (windows, blackouts, during)")


def not_carried_over(settings: ScheduleSettings, *, has_jitter: bool = False) -> list[str]:
    """What of a schedule the target leaves away, though it starts it."""
    found = []
    if settings.jitter_s and not has_jitter:
        found.append("jitter")
    if settings.near is not None:
        found.append("near")
    if settings.missed == "all":
        found.append("missed: all")
    if settings.overlap != "skip":
        found.append(f"overlap: {settings.overlap}")
    return found


def run_words(place: Place, source: str, kind: str, *options: str) -> list[str]:
    """The command that starts a run in the foreground; what is unfinished of its kind goes on."""
    where = ["--project", place.folder] if place.folder else []
    overlay = ["--env", place.environment] if place.environment else []
    # After the dashes nothing is an option, whatever a source is called.
    return [*place.command, "run", *where, *overlay, "--kind", kind, *options, "--", source]


def is_one_line(text: str) -> bool:
    return text.isprintable() and text == text.strip()
