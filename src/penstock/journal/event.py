"""What all events have in common: a kind, typed data, and a sentence for a person."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One kind of event. Its fields are the event's data; its docstring says what it is about.

    What every event has beside them (time, actor, source, run, job, attempt, worker) is no part of the data.
    """

    kind: ClassVar[str] = ""
    # Who writes it, for the reference.
    by: ClassVar[str] = "Penstock"
    # Whether the actor is always the worker that it is about.
    is_by_worker: ClassVar[bool] = False

    def sentence(self) -> str:
        """What a person reads beside the event's kind; empty where the kind says it all."""
        return ""


class Reasoned(Event, frozen=True, omit_defaults=True):
    """An event with a reason: a person's own words, or the cause that Penstock names."""

    reason: str = ""

    def sentence(self) -> str:
        return self.reason


def with_reason(text: str, reason: str) -> str:
    """`text: reason`, or the text alone where nobody gave a reason."""
    return f"{text}: {reason}" if reason else text
