"""Secrets never reach the journal: what a step says is cleaned before it is written down."""

from __future__ import annotations

from msgspec.structs import replace

from penstock.jobs.outcome import Effects, Failed, Note, Outcome, Skipped, Snoozed, Succeeded
from penstock.settings import redact


def redacted(outcome: Outcome, secrets: frozenset[str]) -> Outcome:
    """The outcome with every secret value masked in its words."""
    match outcome:
        case Succeeded(effects):
            redact_notes(effects, secrets)
            return outcome
        case Failed():
            error, traceback = redact(outcome.error, secrets), redact(outcome.traceback, secrets)
            cause = redact(outcome.cause, secrets)
            return replace(outcome, error=error, traceback=traceback, cause=cause)
        case Skipped() | Snoozed():
            return replace(outcome, reason=redact(outcome.reason, secrets))
    return outcome


def redact_notes(effects: Effects, secrets: frozenset[str]) -> None:
    effects.notes = [Note(redact(note.text, secrets)) for note in effects.notes]
    effects.rejections = [
        replace(each, reason=redact(each.reason, secrets)) for each in effects.rejections
    ]
