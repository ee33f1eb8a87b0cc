"""Soundness: whether the stored pages that the database refers to can still be had.

The database knows a page by its hash and its place in a segment; the segments are files or objects beside it,
which can be deleted, cut off or damaged without the database noticing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import StoreCorrupt
from penstock.snapshots import SegmentPlace, SnapshotStore, open_snapshots
from penstock.store.rows import SegmentEnd

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns

BATCH = 1000
AGAIN = "the next fetch that brings the same content stores it again"


@dataclass(frozen=True, slots=True)
class Checked:
    """One segment was looked at: how many pages lie in it, and what is wrong with them."""

    payloads: int
    problems: list[str]


def check_pages(
    project: Nouns, is_read: bool | None, on_progress: Callable[[int], None]
) -> tuple[list[str], int]:
    """What is wrong with the stored pages, and how many there are; by default those of a folder are read."""
    if is_read is None:
        is_read = isinstance(project.settings.snapshots, Path)
    problems, pages = list[str](), 0
    for checked in check_snapshots(project, reads=is_read):
        problems += checked.problems
        pages += checked.payloads
        on_progress(pages)
    return problems, pages


def check_snapshots(project: Nouns, *, reads: bool) -> Iterator[Checked]:
    """Look at every segment that pages lie in; with `reads`, read each page and compare its hash."""
    where = project.settings.snapshots
    if isinstance(where, Path) and not where.is_dir():
        yield from _without_folder(project, where)
        return
    with closing(open_snapshots(where, "check")) as snapshots:
        sizes = dict(snapshots.segments())
        for end in _ends(project):
            found = _too_short(end, sizes.get(end.segment))
            yield Checked(
                end.payloads, found or (_unreadable(project, snapshots, end) if reads else [])
            )


def _without_folder(project: Nouns, where: Path) -> Iterator[Checked]:
    """Looking makes no folder."""
    for end in _ends(project):
        yield Checked(end.payloads, [f"{where} is gone, and with it segment {end.segment}"])


def _ends(project: Nouns) -> Iterator[SegmentEnd]:
    after = ""
    while ends := project.connection.snapshots.segment_ends(after, BATCH):
        yield from ends
        after = ends[-1].segment


def _too_short(end: SegmentEnd, size: int | None) -> list[str]:
    about = f"{end.payloads:,} page{'' if end.payloads == 1 else 's'}"
    if size is None:
        return [f"segment {end.segment} is gone, and {about} with it; {AGAIN}"]
    if size < end.size:
        return [f"segment {end.segment} is cut off at {size:,} of {end.size:,} bytes; {AGAIN}"]
    return []


def _unreadable(project: Nouns, snapshots: SnapshotStore, end: SegmentEnd) -> list[str]:
    problems = []
    for key, offset, length in project.connection.snapshots.payloads(end.segment):
        try:
            snapshots.read(SegmentPlace(key, end.segment, offset, length))
        except StoreCorrupt as error:
            problems.append(f"{error.message}; {AGAIN}")
    return problems
