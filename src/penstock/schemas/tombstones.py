"""Tombstones: what is saved in place of a record whose item is gone."""

from __future__ import annotations

from typing import Any

DELETED = "deleted"
_ABOUT = frozenset({DELETED, "moved_to"})


def is_tombstone(data: Any) -> bool:
    """Whether data says that its record is deleted, and has nothing else but what the record is called by."""
    if not isinstance(data, dict) or data.get(DELETED) is not True:
        return False
    return len(data.keys() - _ABOUT) == 1
