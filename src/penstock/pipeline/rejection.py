"""What a step says of an item that it judged and does not want, made fit to be kept."""

from __future__ import annotations

import math
import re
from typing import Any

from penstock.jobs.effects import Rejection
from penstock.jobs.outcome import BELOW_THRESHOLD, CODE_LENGTH, REJECTED, SCHEMA, Reject
from penstock.jobs.words import words_of
from penstock.settings.secrets import LOOKED_AT

_CODE = re.compile(r"[A-Za-z0-9_.:-]+")


def is_code(code: Any) -> bool:
    """A word that can be named on a command line."""
    return isinstance(code, str) and len(code) <= CODE_LENGTH and bool(_CODE.fullmatch(code))


def rejection_of(reject: Reject) -> Rejection:
    """What was raised, whatever it was raised with: the item is not wanted, and that is what counts."""
    code = reject.code if is_code(reject.code) else REJECTED
    return Rejection(code, _line(reject.reason), _number(reject.score))


def below_threshold(what: str, score: float, threshold: float) -> Rejection:
    reason = f"{what}: its score {score:g} is below the threshold {threshold:g}"
    return Rejection(BELOW_THRESHOLD, _line(reason), score)


def does_not_fit(what: str, problem: str, score: float | None) -> Rejection:
    return Rejection(SCHEMA, _line(f"{what}: {problem}"), score)


def _number(score: Any) -> float | None:
    is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
    return float(score) if is_number and math.isfinite(score) else None


def _line(text: Any) -> str:
    # Cut to its length when secrets have been masked in it.
    return words_of(text, LOOKED_AT)
