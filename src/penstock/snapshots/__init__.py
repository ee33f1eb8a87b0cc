"""Snapshots: raw payloads as they were fetched, kept in WARC segments that are never rewritten.

In:    captures of fetched pages.
Out:   the place each was written to, and the capture again for that place, checked by its hash.
Never: a name made of anything from outside, rewriting what is written, the time of day, SQL.
"""

from penstock.snapshots.location import open_snapshots
from penstock.snapshots.segment import Packed, SegmentPlace, packed_ahead
from penstock.snapshots.store import SnapshotsAway, SnapshotStore
from penstock.snapshots.warc import Capture, content_hash

__all__ = [
    "Capture",
    "Packed",
    "SegmentPlace",
    "SnapshotStore",
    "SnapshotsAway",
    "content_hash",
    "open_snapshots",
    "packed_ahead",
]
