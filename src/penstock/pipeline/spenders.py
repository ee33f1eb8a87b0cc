"""What a step spends by `ctx.spend`, as far as its code tells before it has run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from penstock.settings.budget import MEASURES


def measures_spent(function: Callable[..., Any]) -> frozenset[str]:
    """The measures that a step names in its calls of `spend`; empty if it has none of its own.

    A step that spends in a function elsewhere is known when it has done so once.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    found: set[str] = set()
    for each in _codes(code) if isinstance(code, CodeType) else ():
        if "spend" in each.co_names:
            found |= _named(each) or set(MEASURES)
    return frozenset(found)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _named(code: CodeType) -> set[str]:
    """The measures among the names of arguments, which stand together in one constant."""
    tuples = [const for const in code.co_consts if isinstance(const, tuple)]
    return {measure for measure in MEASURES if any(measure in names for names in tuples)}
