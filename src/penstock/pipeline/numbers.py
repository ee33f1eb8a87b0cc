"""Numbers that can't be kept: JSON has no NaN and no infinity, and sums must stay finite."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

# A single amount or score beyond this is a mistake, and sums of what is below stay exact enough.
LARGEST_NUMBER = 1e12


def is_number(value: object) -> bool:
    """Whether it is a number that can be counted with."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -LARGEST_NUMBER <= value <= LARGEST_NUMBER


def unkept_number(value: Any, encoded: bytes) -> str:
    """Where in a value there is a NaN or an infinity, and which; empty if there is none.

    Both are written as null, so a value without one need not be looked at.
    """
    return _found(value, "") if b"null" in encoded else ""


# What holds no such number; most of what is saved.
_HARMLESS = (str, int, bool, type(None), bytes)


def _found(value: Any, path: str) -> str:
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{path or 'the value'} is {value}"
    if isinstance(value, dict):
        return _found_in(value.items(), f"{path}." if path else "", "")
    if isinstance(value, (list, tuple)):
        return _found_in(enumerate(value), f"{path}[", "]")
    if isinstance(value, _HARMLESS):
        return ""
    plain = msgspec.to_builtins(value)
    return _found(plain, path) if isinstance(plain, (dict, list, float)) else ""


def _found_in(parts: Iterable[tuple[Any, Any]], before: str, after: str) -> str:
    for name, each in parts:
        if type(each) not in _HARMLESS and (found := _found(each, f"{before}{name}{after}")):
            return found
    return ""
