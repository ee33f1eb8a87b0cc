"""Snapshots: raw payloads as they were fetched, kept in append-only WARC segments.

In:    captures of fetched pages.
Out:   the place each was written to, and the capture again for that place, checked by its hash.
Never: a file name made of anything from outside, rewriting what is written, the clock, SQL.
"""

from penstock.snapshots.store import Place, SnapshotStore
from penstock.snapshots.warc import Capture, content_hash

__all__ = ["Capture", "Place", "SnapshotStore", "content_hash"]
