"""The order of cursors: whether a checkpoint that moves from one to another goes on, or back.

A cursor is JSON: a number, a text, a list or an object. Texts that are whole numbers are ordered as
numbers, dates and times as moments, all others as texts; lists by the first element that differs. An
object goes back when one of its fields does and none goes on.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

# A checkpoint whose cursor is one of these says nothing about how far its partition has come.
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_WHOLE = re.compile(r"-?\d{1,30}")


def is_empty(cursor: Any) -> bool:
    return not isinstance(cursor, bool) and cursor in _EMPTY


def refusal(old: Any, new: Any, *, is_ordered: bool = True) -> str:
    """Why a checkpoint must not move from the old cursor to the new one; empty if it may.

    Cursors without an order (a provider's opaque tokens) are only refused when they are empty.
    """
    if is_empty(old):
        return ""
    if is_empty(new):
        return "it is empty"
    if not is_ordered:
        return ""
    if _kind(old) != _kind(new):
        return f"it is {_kind(new)}, and the checkpoint is {_kind(old)}"
    way = compared(old, new)
    return "it goes back" if way is not None and way < 0 else ""


def compared(old: Any, new: Any) -> int | None:
    """1 if the new one is further on, 0 if it is the same, -1 if it is further back; None: who knows."""
    try:
        return _compared(old, new)
    except RecursionError:
        return None


def _compared(old: Any, new: Any) -> int | None:
    if old == new and _kind(old) == _kind(new):
        return 0
    if is_empty(old) or is_empty(new):
        return 1 if is_empty(old) else -1
    if _kind(old) != _kind(new):
        return None
    if isinstance(old, list):
        return _compared_lists(old, new)
    if isinstance(old, dict):
        return _compared_objects(old, new)
    return _sign(*_ordered(old, new))


def _compared_lists(old: list[Any], new: list[Any]) -> int | None:
    for before, after in zip(old, new, strict=False):
        way = _compared(before, after)
        if way != 0:
            return way
    return _sign(len(old), len(new))


def _compared_objects(old: dict[str, Any], new: dict[str, Any]) -> int | None:
    ways = {_compared(old[name], new[name]) for name in old if name in new}
    if 1 in ways or ways <= {0, None}:
        return 1 if 1 in ways else None
    return -1


def _ordered(old: Any, new: Any) -> tuple[Any, Any]:
    """Both as something that has the order that is meant."""
    if not isinstance(old, str):
        return old, new
    if _WHOLE.fullmatch(old) and _WHOLE.fullmatch(new):
        return int(old), int(new)
    before, after = _moment(old), _moment(new)
    return (old, new) if before is None or after is None else (before, after)


def _moment(text: str) -> datetime | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _sign(old: Any, new: Any) -> int:
    return int(new > old) - int(new < old)


def _kind(cursor: Any) -> str:
    match cursor:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
    return "an object"
