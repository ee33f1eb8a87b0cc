"""Reading: the one value that a selector finds for a field on a page, or None."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.agents.learn.page import Page
from penstock.agents.learn.selectors import raw_values
from penstock.agents.learn.values import value_of
from penstock.agents.learn.vocabulary import Field

# Of two texts, so much of the beginning says whether they are one.
SAME_START = 60


def value_at(page: Page, selector: str, field: Field) -> Any:
    """The value; None if there is none, or if there are several."""
    found = []
    for raw in raw_values(page, selector):
        value = value_of(field.kind, raw, page.base)
        if value is not None and value not in found:
            found.append(value)
    return found[0] if len(found) == 1 else None


def first_value(page: Page, selectors: Sequence[str], field: Field) -> Any:
    """Of the first selector that finds one."""
    for selector in selectors:
        value = value_at(page, selector, field)
        if value is not None:
            return value
    return None


def is_same(field: Field, one: Any, other: Any) -> bool:
    """Whether two values say the same."""
    if field.kind == "long":
        first, second = _start(one), _start(other)
        return first.startswith(second) or second.startswith(first)
    if field.kind == "text":
        return str(one).casefold() == str(other).casefold()
    return bool(one == other)


def _start(text: Any) -> str:
    return str(text)[:SAME_START].rstrip(" .…").casefold()
