"""Hours of hosts: which jobs wait for them, and what they were when whoever led last looked."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.jobs.outcome import Settlement
from penstock.store.database import Database, to_json

# What a settlement says of a job that met its host outside of its hours.
WINDOW = "window"
BATCH = 500


def note_host_waits(db: Database, ends: Sequence[Settlement]) -> None:
    """Remember which of these jobs wait for the hours of a host."""
    waits = [(end.job_id, end.host) for end in ends if end.gate == WINDOW and end.host]
    if waits:
        db.do("note_host_waits", waits=to_json(sorted(waits)))
