"""Causes: what failures of a source have in common, and when that is worth a person's look.

A cause is a host with what it answered, a place in the code, or what a step declares (a selector, a
pattern). Three jobs that end in quarantine for the same cause escalate it: from then on nothing is
tried again for it, until the pipeline changes or somebody releases what lies there.
"""

from __future__ import annotations

ENOUGH = 3
CAUSE_BYTES = 400
# Kinds that may pass by themselves: a page that succeeds meanwhile says that it has passed.
PASSING = ("transient", "throttled")


def in_words(seconds: float) -> str:
    """`45 s`, `5 min`, `2 h`, `2.5 h`, `3 d`."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} s"
