"""What a runbook is: signals that detect a fault, and steps in the order in which they are taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

Value = bool | int | float | str | None
Comparison = Literal["is", "is not", ">", "<"]
# What a runbook is about: it needs a source, takes one, or is about the whole project.
Scope = Literal["source", "any", "project"]
Part = Literal["mitigate", "root cause", "roll back and replay", "confirm"]
# `act`: the runbook performs a verb. `look`: it shows what is known. `person`: someone works outside of it.
StepKind = Literal["act", "look", "person"]


class Reading(msgspec.Struct, frozen=True):
    """A signal at this moment: its value, a sentence about it, and examples. None: nothing is known."""

    value: Value = None
    text: str = ""
    examples: tuple[str, ...] = ()


Readings = Mapping[str, Reading]
UNKNOWN = Reading()


class Check(msgspec.Struct, frozen=True):
    """A comparison of one signal with a fixed value. An unknown value is neither more nor less."""

    signal: str
    comparison: Comparison
    value: Value

    def holds(self, readings: Readings) -> bool:
        found = readings.get(self.signal, UNKNOWN).value
        if self.comparison == "is":
            return found == self.value
        if self.comparison == "is not":
            return found != self.value
        if not isinstance(found, (int, float)) or not isinstance(self.value, (int, float)):
            return False
        return found > self.value if self.comparison == ">" else found < self.value


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step. It applies while all of `when` hold, and is settled by itself when all of `settled` do.

    `while_raised`: it applies only while a signal shows the fault. A step of the part `confirm` applies only
    when none does, and ends the runbook.

    `verb` is the verb of a project that an `act` performs: on the target, or on the value of the signal
    `takes`. `verbs` are those that help with the other kinds of steps. `shows` are the signals that matter
    for it. `finds` are signals that are known once the step was offered.
    """

    name: str
    part: Part
    title: str
    why: str
    kind: StepKind = "act"
    verb: str = ""
    takes: str = ""
    options: tuple[tuple[str, str], ...] = ()
    verbs: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    when: tuple[Check, ...] = ()
    settled: tuple[Check, ...] = ()
    while_raised: bool = False
    finds: tuple[tuple[str, Value], ...] = ()

    def signals(self) -> Iterator[str]:
        """Every signal that it reads."""
        yield from self.shows
        yield from (check.signal for check in (*self.when, *self.settled))
        if self.takes:
            yield self.takes


class Runbook(msgspec.Struct, frozen=True, kw_only=True):
    """A fault and what to do about it. Any of `detects` means that the fault is there.

    `bad_run` are the signals of the newest run that make it a bad one: by them a runbook finds the first bad
    run and the last good one.
    """

    name: str
    title: str
    scope: Scope
    about: str
    detects: tuple[Check, ...]
    steps: tuple[Step, ...]
    shows: tuple[str, ...] = ()
    bad_run: tuple[Check, ...] = ()

    def step(self, name: str) -> Step | None:
        return next((step for step in self.steps if step.name == name), None)

    def signals(self) -> tuple[str, ...]:
        """Every signal that it reads, each once: those that detect the fault first."""
        found = [check.signal for check in self.detects]
        found += self.shows
        for step in self.steps:
            found += step.signals()
        return tuple(dict.fromkeys(found))
