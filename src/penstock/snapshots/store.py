"""The seam: where captures are written and found again, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from penstock.errors import StoreError
from penstock.snapshots.segment import Packed, SegmentPlace
from penstock.snapshots.warc import Capture


class SnapshotsAway(StoreError):
    """The snapshots can't be had at the moment; nothing is lost, work goes on when they can."""


class SnapshotsRefused(SnapshotsAway):
    """The same, but it will not pass by itself: somebody has to mend it."""


class SnapshotStore(Protocol):
    """One thread appends, any may read. Each writer has segments of its own: there is nothing to lock.

    What was appended since the last `sync` is promised by nobody: if `append` or `sync` raises, append
    it again. What is left behind then has no place that points to it, and is only space.
    """

    def append(self, captures: Sequence[Capture | Packed]) -> list[SegmentPlace]:
        """Write captures and say where they are; they are durable, and can be read, after `sync`."""

    def sync(self) -> None:
        """Make everything appended so far survive a power cut."""

    def read(self, place: SegmentPlace) -> Capture:
        """The capture at this place; StoreCorrupt if it is not there as it was written."""

    def holds(self, place: SegmentPlace) -> bool:
        """Whether the capture can still be had, so that equal content need not be stored again.

        A folder reads it; an object store, which keeps its own checksums, is asked how large its segment is.
        """

    def segments(self) -> Iterator[tuple[str, int]]:
        """Every segment of every writer, with its size.

        Not its age: whose clock would say so? A writer leaves a segment that it has not written to
        for `IDLE_S`, so one that has not grown for longer than that will never grow again.
        """

    def remove(self, segments: list[str]) -> None:
        """Delete whole segments, except the one being written; gone already is fine."""

    def erase(self, places: Sequence[SegmentPlace]) -> None:
        """Overwrite these captures where they lie, durably; what lies beside them stays as it is.

        What takes their place is a record of the same length that says so: the segment stays a WARC file.
        """

    def check(self) -> None:
        """Raise now what an operator must mend before anything can be stored."""

    def close(self) -> None:
        """Sync and let go."""
