"""Streams: until when each was known to be alive, so that what it missed can be filled."""

from __future__ import annotations

from penstock.store.database import Database


class Streams:
    """The verbs of long-lived attempts."""

    _db: Database

    def beat_stream(self, worker: str, job_id: int, attempt: int) -> bool:
        """This stream is alive now; False when the attempt no longer owns its job."""
        with self._db.writing() as now:
            beat = {"id": job_id, "attempt": attempt, "worker": worker, "now": now}
            return self._db.do("beat_stream_if_running", **beat) > 0

    def stream_alive_at(self, source_id: int) -> float | None:
        """When a stream of this source was last known to be alive; None if there never was one."""
        found = self._db.value("stream_alive_at", source_id=source_id)
        return None if found is None else float(found)

    def running_streams(self) -> int:
        """How many streams run now: they don't end by themselves, so nobody waits for them."""
        return int(self._db.value("running_streams"))
