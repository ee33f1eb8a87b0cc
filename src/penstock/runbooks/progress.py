"""How far a runbook has come: the state of each step, from the readings and what is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from penstock.runbooks.runbook import Check, Readings, Runbook, Step

StepState = Literal["done", "skipped", "settled", "next", "later", "not needed"]
Recorded = Literal["done", "skipped"]


class Standing(msgspec.Struct, frozen=True):
    """A step and its state. `missing` are the checks that keep it from applying."""

    step: Step
    state: StepState
    missing: tuple[Check, ...] = ()


def standings(
    runbook: Runbook, readings: Readings, recorded: Mapping[str, Recorded]
) -> list[Standing]:
    """The state of every step. The first that applies and is not taken is `next`; others are `later`."""
    found: list[Standing] = []
    has_next = False
    for step in runbook.steps:
        state, missing = _state(runbook, step, readings, recorded.get(step.name))
        if state == "next" and has_next:
            state = "later"
        has_next = has_next or state == "next"
        found.append(Standing(step, state, missing))
    return found


def raised(checks: Iterable[Check], readings: Readings) -> list[Check]:
    """The checks that hold: what detects the fault now."""
    return [check for check in checks if check.holds(readings)]


def next_step(found: Iterable[Standing]) -> Step | None:
    return next((each.step for each in found if each.state == "next"), None)


def _state(
    runbook: Runbook, step: Step, readings: Readings, recorded: Recorded | None
) -> tuple[StepState, tuple[Check, ...]]:
    if recorded is not None:
        return recorded, ()
    if step.settled and all(check.holds(readings) for check in step.settled):
        return "settled", ()
    missing = tuple(check for check in step.when if not check.holds(readings))
    signs = raised(runbook.detects, readings)
    is_early = step.part == "confirm" and bool(signs)
    is_late = step.while_raised and not signs
    return ("not needed" if missing or is_early or is_late else "next"), missing
