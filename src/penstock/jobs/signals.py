"""Signals by name: which are about one source, which the engine alone raises, and who is meant by them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

LONGEST_NAME = 100
RUN_COMPLETED = "run.completed"
FILE_LANDED = "file.landed"
# Named after these, a signal is about one source: it starts that one alone, unless a schedule says otherwise.
PARTICULAR = (
    "breaker", "budget", "cause", "file", "gap", "quality", "run", "schedule", "schema", "sla", "source",
)  # fmt: skip
# What the engine alone can know.
RESERVED = ("run", "file")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")


class SignalFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The signal that a run was started by, as its steps see it.

    `run` is the run that raised it. What waited for several sources has the runs of all of them in `runs`.
    """

    id: int
    name: str
    data: Any = None
    source: str | None = None
    run: int | None = None
    runs: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class AwaitedSignal:
    """What a schedule waits for: a signal by its name, and the source that it is to be about, if any."""

    name: str
    of: str | None = None

    def means(self, name: str, source: str | None, own: str) -> bool:
        """Whether a schedule of the source `own` means a signal of this name about that source."""
        if name != self.name:
            return False
        if self.of is not None:
            return source == self.of
        return not is_particular(name) or source in (None, own)


def wanted(text: str) -> AwaitedSignal:
    """`NAME` or `NAME of SOURCE`."""
    name, _, of = text.partition(" of ")
    return AwaitedSignal(name, of or None)


def is_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def is_particular(name: str) -> bool:
    return name.partition(".")[0] in PARTICULAR


def is_reserved(name: str) -> bool:
    return "." in name and name.partition(".")[0] in RESERVED
