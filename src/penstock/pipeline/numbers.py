"""Numbers that can't be kept: JSON has no NaN and no infinity, and sums must stay finite."""

from __future__ import annotations

import math
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


def _found(value: Any, path: str) -> str:
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{path or 'the value'} is {value}"
    if isinstance(value, dict):
        parts = ((f"{path}.{key}" if path else str(key), each) for key, each in value.items())
    elif isinstance(value, (list, tuple)):
        parts = ((f"{path}[{place}]", each) for place, each in enumerate(value))
    elif value is None or isinstance(value, (str, bytes, int)):
        return ""
    else:
        plain = msgspec.to_builtins(value)
        return _found(plain, path) if isinstance(plain, (dict, list, float)) else ""
    return next(filter(None, (_found(each, name) for name, each in parts)), "")
