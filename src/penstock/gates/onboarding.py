"""Onboarding: the states of a source, and what must be known of it before anything is fetched.

A source that nobody ever proposed is active: it stands in the configuration, and that is enough unless
the project requires onboarding. The table of moves, the SQL `CHECK`s and `docs/states.md` are held equal by
a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

import msgspec

DAY_S = 86_400.0


class SourceState(StrEnum):
    PROPOSED = "proposed"
    TRIAL = "trial"
    ACTIVE = "active"
    RETIRED = "retired"


SOURCE_MOVES: dict[tuple[SourceState, SourceState], str] = {
    (SourceState.PROPOSED, SourceState.TRIAL): "approved, once its compliance was checked",
    (SourceState.PROPOSED, SourceState.RETIRED): "rejected",
    (SourceState.TRIAL, SourceState.ACTIVE): "activated, once a trial run has ended",
    (SourceState.TRIAL, SourceState.RETIRED): "rejected after its trial",
    (SourceState.ACTIVE, SourceState.RETIRED): "retired",
    (SourceState.RETIRED, SourceState.PROPOSED): "proposed again by a person",
}
# The states in which nothing of a source starts.
SHUT = (SourceState.PROPOSED, SourceState.RETIRED)

# Where a source is, in a project of several cells: in a cell beside `main` only what is `here` is performed.
CellState = Literal["", "here", "leaving", "left", "arriving"]

RobotsVerdict = Literal["", "allowed", "disallowed"]
TermsVerdict = Literal["", "accepted", "changed"]


def source_may_move(leaves: SourceState, enters: SourceState) -> bool:
    return (leaves, enters) in SOURCE_MOVES


@dataclass(frozen=True, slots=True)
class ComplianceTerms:
    """What a source needs before it is fetched; with `is_required`, also one that was never proposed."""

    is_required: bool = False
    robots_max_age_s: float = 7 * DAY_S
    terms_max_age_s: float = 30 * DAY_S
    # In a cell beside `main`: a source that was never placed there is not there.
    is_placed_only: bool = False


NOTHING_REQUIRED = ComplianceTerms()


class Onboarding(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What the store knows of a source's onboarding, as the claim reads it.

    The dates are those of the last check that could be made: a check that failed leaves the one before it.
    """

    state: SourceState
    changed_at: float
    changed_by: str
    reason: str
    proposed_at: float | None
    owner: str
    robots_verdict: RobotsVerdict
    robots_at: float | None
    terms_verdict: TermsVerdict
    terms_at: float | None
    legal_hold_at: float | None
    legal_hold_by: str
    legal_hold_reason: str
    cell_state: CellState = ""
    cell: str = ""


def is_here(cell_state: str | None, *, is_placed_only: bool) -> bool:
    """Whether this cell performs a source, by what its database says; None where it says nothing."""
    return cell_state == "here" or (not cell_state and not is_placed_only)


def is_elsewhere(known: Onboarding | None, terms: ComplianceTerms) -> bool:
    """Whether another cell performs this source, or none until it has moved."""
    state = None if known is None else known.cell_state
    return not is_here(state, is_placed_only=terms.is_placed_only)


def cell_words(state: str, cell: str) -> str:
    """Where a source is that this cell does not perform."""
    match state:
        case "leaving":
            return f"moving to cell {cell}"
        case "left":
            return f"in cell {cell}"
        case "arriving":
            return f"arriving from cell {cell}"
    return "not placed in this cell"


def state_of(known: Onboarding | None, terms: ComplianceTerms) -> SourceState:
    """The state of a source: one that the store knows nothing of is active unless onboarding is required."""
    if known is not None:
        return known.state
    return SourceState.PROPOSED if terms.is_required else SourceState.ACTIVE


def is_checked(known: Onboarding | None, terms: ComplianceTerms) -> bool:
    """Whether its compliance counts: it was onboarded, or everything has to be."""
    return terms.is_required or (known is not None and known.proposed_at is not None)


class Gap(NamedTuple):
    """One thing that is missing before a source may be fetched, and what mends it."""

    mended_by: Literal["owner", "check", "acceptance"]
    words: str


def gaps(known: Onboarding | None, terms: ComplianceTerms, now: float) -> list[Gap]:
    """All that is missing; empty if nothing is."""
    owner, robots, verdict = ("", "", "")
    robots_at = terms_at = None
    if known is not None:
        owner, robots, robots_at = known.owner, known.robots_verdict, known.robots_at
        verdict, terms_at = known.terms_verdict, known.terms_at
    found = [] if owner else [Gap("owner", "it has no owner")]
    if robots == "disallowed":
        found.append(Gap("check", "robots.txt does not allow it"))
    elif not robots:
        found.append(Gap("check", "robots.txt was never checked"))
    elif is_stale(robots_at, terms.robots_max_age_s, now):
        found.append(Gap("check", f"robots.txt was last checked {_ago(robots_at, now)} ago"))
    if verdict == "changed":
        found.append(Gap("acceptance", "its terms have changed since they were accepted"))
    elif not verdict:
        found.append(Gap("acceptance", "its terms were never accepted"))
    elif is_stale(terms_at, terms.terms_max_age_s, now):
        found.append(Gap("check", f"its terms were last checked {_ago(terms_at, now)} ago"))
    return found


def first_gap(known: Onboarding | None, terms: ComplianceTerms, now: float) -> Gap | None:
    """The first thing that keeps a source from being fetched; None if nothing does, or nobody asks."""
    if not is_checked(known, terms):
        return None
    return next(iter(gaps(known, terms, now)), None)


def is_stale(checked_at: float | None, max_age_s: float, now: float) -> bool:
    return checked_at is None or now - checked_at >= max_age_s


def _ago(at: float | None, now: float) -> str:
    days = (now - (at or 0.0)) / DAY_S
    return f"{days:.0f} d" if days >= 1 else f"{days * 24:.0f} h"
