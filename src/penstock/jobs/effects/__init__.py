"""Effects: what an attempt wants remembered.

In:    what a step says through its context, buffered.
Out:   the same, staged, dried, redacted or written by the transaction that settles the attempt.
Never: SQL, sleeping, reading the clock.
"""

from penstock.jobs.effects.checkpoints import Mark
from penstock.jobs.effects.coverage import Covered
from penstock.jobs.effects.effects import MOST_EFFECT_BYTES, MOST_EFFECTS, Effects
from penstock.jobs.effects.notes import Note
from penstock.jobs.effects.pages import Announced, Extracted
from penstock.jobs.effects.proposals import Proposed
from penstock.jobs.effects.records import Basis, Merge, Save
from penstock.jobs.effects.rejections import Rejection
from penstock.jobs.effects.signals import Raised

__all__ = [
    "MOST_EFFECTS",
    "MOST_EFFECT_BYTES",
    "Announced",
    "Basis",
    "Covered",
    "Effects",
    "Extracted",
    "Mark",
    "Merge",
    "Note",
    "Proposed",
    "Raised",
    "Rejection",
    "Save",
]
