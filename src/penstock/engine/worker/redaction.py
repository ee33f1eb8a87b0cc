"""Secrets never reach the journal: what a step says is masked, then cut, before it is written down."""

from __future__ import annotations

from msgspec.structs import replace

from penstock.jobs.effects import Effects
from penstock.jobs.effects.effects import redact
from penstock.jobs.effects.rejections import REASON_LENGTH
from penstock.jobs.outcome import (
    Cancelled,
    Failed,
    Outcome,
    Skipped,
    Snoozed,
    Succeeded,
)
from penstock.settings.secrets import Masker, masker_for

ERROR_LENGTH = 2000
CAUSE_LENGTH = 200


def redacted(outcome: Outcome, secrets: frozenset[str] | Masker) -> Outcome:
    """The outcome as it may be kept: every secret masked in its words, and no text longer than it may be."""
    if isinstance(outcome, Succeeded):
        if outcome.effects:
            redact(outcome.effects, _masker(secrets))
        return outcome
    masker = _masker(secrets)
    match outcome:
        case Failed():
            return replace(
                outcome,
                error=masker.mask_and_cut(outcome.error, ERROR_LENGTH),
                traceback=masker.mask(outcome.traceback),
                cause=masker.mask_and_cut(outcome.cause, CAUSE_LENGTH),
            )
        case Skipped():
            if outcome.effects is not None:
                redact(outcome.effects, masker)
            return replace(outcome, reason=masker.mask_and_cut(outcome.reason, REASON_LENGTH))
        case Snoozed() | Cancelled():
            return replace(outcome, reason=masker.mask_and_cut(outcome.reason, REASON_LENGTH))
    return outcome


def redact_notes(effects: Effects, secrets: frozenset[str] | Masker) -> None:
    redact(effects, _masker(secrets))


def _masker(secrets: frozenset[str] | Masker) -> Masker:
    return secrets if isinstance(secrets, Masker) else masker_for(secrets)
