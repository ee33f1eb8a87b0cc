"""Secrets never reach the journal: what a step says is masked, then cut, before it is written down."""

from __future__ import annotations

from msgspec.structs import replace

from penstock.jobs.outcome import (
    Cancelled,
    Effects,
    Failed,
    Note,
    Outcome,
    Skipped,
    Snoozed,
    Succeeded,
)
from penstock.settings.secrets import Masker, masker_for

ERROR_LENGTH = 2000
CAUSE_LENGTH = 200
REASON_LENGTH = 2000
NOTE_LENGTH = 2000


def redacted(outcome: Outcome, secrets: frozenset[str]) -> Outcome:
    """The outcome as it may be kept: every secret masked in its words, and no text longer than it may be."""
    masker = masker_for(secrets)
    match outcome:
        case Succeeded(effects):
            _redact(effects, masker)
            return outcome
        case Failed():
            return replace(
                outcome,
                error=masker.mask_and_cut(outcome.error, ERROR_LENGTH),
                traceback=masker.mask(outcome.traceback),
                cause=masker.mask_and_cut(outcome.cause, CAUSE_LENGTH),
            )
        case Skipped():
            if outcome.effects is not None:
                _redact(outcome.effects, masker)
            return replace(outcome, reason=masker.mask_and_cut(outcome.reason, REASON_LENGTH))
        case Snoozed() | Cancelled():
            return replace(outcome, reason=masker.mask_and_cut(outcome.reason, REASON_LENGTH))
    return outcome


def redact_notes(effects: Effects, secrets: frozenset[str]) -> None:
    _redact(effects, masker_for(secrets))


def _redact(effects: Effects, masker: Masker) -> None:
    # Most attempts say nothing, and there are very many of them.
    if effects.notes:
        effects.notes = [
            Note(masker.mask_and_cut(each.text, NOTE_LENGTH)) for each in effects.notes
        ]
    if effects.rejections:
        effects.rejections = [
            replace(each, reason=masker.mask_and_cut(each.reason, REASON_LENGTH))
            for each in effects.rejections
        ]
