"""Hours of hosts: which jobs wait for them, and what they were when whoever led last looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.journal.job_events import JobDue
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger

# What a settlement says of a job that met its host outside of its hours.
WINDOW = "window"
BATCH = 500


class Hours:
    """The verb of whoever leads, with the hours that penstock.yaml has now."""

    _db: Database

    def plan_hours(self, definitions: Mapping[str, str], actor: str) -> int:
        """Make these the hours of hosts; answers how many jobs are looked at again because theirs are others.

        Each of them is told the new time when it asks. Whoever is stopped on the way begins again: what a
        host's hours were is known until its last job is queued.
        """
        known: dict[str, str] = self._db.json("host_hours")
        woken = 0
        for host in sorted({*known, *definitions}):
            if known.get(host) != definitions.get(host):
                while batch := self._wake(host, actor):
                    woken += batch
                self._note(host, definitions.get(host))
        return woken

    def _wake(self, host: str, actor: str) -> int:
        with self._db.writing() as now:
            found = self._db.json("put_off_for_host", host=host, limit=BATCH)
            ids = [job_id for job_id, _, _ in found]
            if not ids:
                return 0
            ledger = Ledger(self._db, now)
            self._db.do("wake_if_waiting", now=now, ids=to_json(ids))
            for _, run_id, stage in found:
                ledger.moved(run_id, stage, JobState.WAITING, JobState.QUEUED)
            ledger.journal_jobs(JobDue(host), ids, actor)
            ledger.write()
            return len(ids)

    def _note(self, host: str, definition: str | None) -> None:
        with self._db.writing():
            if definition is None:
                self._db.do("drop_host_hours", host=host)
            else:
                self._db.do("set_host_hours", host=host, definition=definition)


def note_host_waits(db: Database, ends: Sequence[Settlement]) -> None:
    """Remember which of these jobs wait for the hours of a host."""
    waits = [(end.job_id, end.host) for end in ends if end.gate == WINDOW and end.host]
    if waits:
        db.do("note_host_waits", waits=to_json(sorted(waits)))
