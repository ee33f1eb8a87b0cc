"""Snapshots: pages as they were fetched, and where their payloads lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from penstock.store.database import Database, to_json
from penstock.store.noun import Noun
from penstock.store.rows import SegmentEnd, SnapshotRow


@dataclass(frozen=True, slots=True)
class Kept:
    """A payload that was fetched for a job and lies in a segment, to be referred to by this id."""

    id: int
    job_id: int
    run_id: int
    url: str
    status: int
    headers: Mapping[str, str]
    fetched_at: float
    hash: str
    segment: str
    offset: int
    length: int
    # Where the redirects ended; '' is the url itself.
    final_url: str = ""
    # This content was stored before, at a place where it can't be read any more.
    mends: bool = False


class Snapshots(Noun):
    """The verbs of snapshots, of payloads, and of the segments these lie in."""

    def of(self, job_id: int, url: str) -> SnapshotRow | None:
        """What an earlier attempt of this job fetched from this address."""
        found = self._db.json("snapshot_of_job", job_id=job_id, url=url)
        return None if found is None else msgspec.convert(found, SnapshotRow)

    def last(self, url: str) -> SnapshotRow | None:
        found = self._db.json("last_snapshot", url=url)
        return None if found is None else msgspec.convert(found, SnapshotRow)

    def get(self, snapshot_id: int) -> SnapshotRow | None:
        found = self._db.json("page_by_id", id=snapshot_id)
        return None if found is None else msgspec.convert(found, SnapshotRow)

    def of_job(self, job_id: int, limit: int = 20) -> list[SnapshotRow]:
        """What a job fetched, the newest first; where it fetched nothing, the page its item came from."""
        return self._db.decoded("pages_of_job", list[SnapshotRow], job_id=job_id, limit=limit)

    def at(self, url: str, limit: int = 20) -> list[SnapshotRow]:
        """What was fetched from an address, the newest first."""
        return self._db.decoded("pages_at", list[SnapshotRow], url=url, limit=limit)

    def places(self, hashes: Sequence[str]) -> dict[str, tuple[str, int, int]]:
        """Where payloads with these hashes lie, if they do."""
        return self._db.decoded("places", dict[str, tuple[str, int, int]], hashes=to_json(hashes))

    def add_payloads(self, places: Sequence[tuple[str, str, int, int]]) -> None:
        """Note where payloads lie (hash, segment, offset, length) that no page refers to yet."""
        with self._db.writing():
            self._db.do("add_payloads", payloads=to_json(places))

    def segment_ends(self, after: str = "", limit: int = 1000) -> list[SegmentEnd]:
        """Segments that payloads lie in, in order, and how large each has to be for them."""
        rows = self._db.json("segment_ends", after=after, limit=limit)
        return [SegmentEnd(*row) for row in rows]

    def payloads(self, segment: str) -> list[tuple[str, int, int]]:
        """What lies in a segment: hash, offset and length of each."""
        return [(key, at, length) for key, at, length in self._db.json("payloads", segment=segment)]

    def segments_in_use(self, segments: Sequence[str]) -> set[str]:
        """Those of these segments that payloads lie in."""
        return set(self._db.json("segments_in_use", segments=to_json(segments)))

    def drop_unused_payloads(self, after: str = "", limit: int = 1000) -> str | None:
        """Forget what lies in segments that no snapshot refers to, one batch of segments at a time.

        Answers with the last segment it has looked at, to go on after; None when there is no more.
        """
        with self._db.writing():
            segments = self._db.json("next_segments", after=after, limit=limit)
            if not segments:
                return None
            self._db.do("lock_payloads")
            self._db.do("drop_unused_payloads", segments=to_json(segments))
        return str(segments[-1])


def keep_snapshots(db: Database, worker: str, kept: Sequence[Kept]) -> list[int]:
    """Refer to payloads that lie in segments already; equal content has one place.

    Answers with the ids that were written: a page whose job is no longer this worker's is not kept.
    """
    if not kept:
        return []
    job_ids = sorted({k.job_id for k in kept})
    owned = set(db.json("owned_jobs", ids=to_json(job_ids), worker=worker))
    mine = [k for k in kept if k.job_id in owned]
    if mine:
        rows = [
            (
                k.id,
                k.job_id,
                k.run_id,
                k.url,
                k.hash,
                k.status,
                to_json(dict(k.headers)),
                k.fetched_at,
                k.final_url,
            )
            for k in mine
        ]
        places = [(k.hash, k.segment, k.offset, k.length) for k in mine]
        db.do("add_payloads", payloads=to_json(places))
        if mended := [(k.hash, k.segment, k.offset, k.length) for k in mine if k.mends]:
            db.do("mend_payloads", payloads=to_json(mended))
        db.do("add_snapshots", snapshots=to_json(rows))
    return [k.id for k in mine]
