"""Signals: named facts that may start a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from penstock.jobs.effects.effect import Ended, Live, Repeatable, Transaction

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects
    from penstock.jobs.repeats import Sayings


class Raised(msgspec.Struct, frozen=True):
    """A signal an attempt raised. `key` is the same in every attempt that says the same again."""

    name: str
    data: bytes
    key: str = ""


class SignalsEffect(Live, Repeatable):
    def clear(self, effects: Effects) -> None:
        effects.signals.clear()

    def key(self, effects: Effects, sayings: Sayings) -> None:
        effects.signals = [
            replace(each, key=sayings.next_key("signal", (each.name, each.data)))
            for each in effects.signals
        ]

    def keys(self, effects: Effects) -> Iterator[str]:
        return (each.key for each in effects.signals)

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        raised = [
            (job, each)
            for end, job in ended
            for each in end.effects.signals
            if not transaction.is_repeat(job, each.key)
        ]
        if raised:
            transaction.raise_signals(raised)
