"""Patterns of a schema: regular expressions that can't take long, whatever a site sends."""

from __future__ import annotations

import re
import re._constants as parts  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from typing import Any

from penstock.schemas.problems import Found, SchemaError, found

# With two repeats and a search, a pattern tries at most the third power of this in a few milliseconds.
LONGEST_TEXT = 256
MOST_REPEATS = 2
_REPEATS = (parts.MAX_REPEAT, parts.MIN_REPEAT)
_REFUSED = (parts.GROUPREF, parts.GROUPREF_EXISTS, parts.ASSERT, parts.ASSERT_NOT)


def pattern_check(wanted: Any, at: str) -> Callable[[Any], Found]:
    """A check that text has this pattern somewhere in it."""
    if not isinstance(wanted, str):
        raise SchemaError(at, "must be text")
    try:
        tree = parser.parse(wanted)
        pattern = re.compile(wanted)
    except (re.error, OverflowError, RecursionError) as error:
        raise SchemaError(at, f"is no regular expression: {error}") from None
    if _is_slow(tree):
        raise SchemaError(
            at,
            "can take very long on some texts: write it without a repeat or a choice inside a repeat, with "
            f"at most {MOST_REPEATS} open repeats, and without references and lookarounds",
        )

    def check(value: Any) -> Found:
        if type(value) is not str:
            return None
        if len(value) > LONGEST_TEXT:
            return found(
                f"is longer than the {LONGEST_TEXT} characters that a pattern is compared with"
            )
        return None if pattern.search(value) else found("does not have its pattern")

    return check


def _is_slow(tree: Any) -> bool:
    repeats = 0
    for operator, argument, depth in _walk(tree, 0):
        if operator in _REFUSED or (depth and operator is parts.BRANCH):
            return True
        if operator in _REPEATS:
            least, most, _ = argument
            if depth and least != most:
                return True
            repeats += least != most
    return repeats > MOST_REPEATS


def _walk(tree: Any, depth: int) -> Iterator[tuple[Any, Any, int]]:
    """Each part with how many repeats it is inside of."""
    for operator, argument in tree:
        yield operator, argument, depth
        if operator in _REPEATS:
            yield from _walk(argument[2], depth + (argument[1] > 1))
        elif operator is parts.BRANCH:
            for branch in argument[1]:
                yield from _walk(branch, depth)
        elif operator is parts.SUBPATTERN:
            yield from _walk(argument[-1], depth)
        elif operator is parts.POSSESSIVE_REPEAT:
            yield from _walk(argument[2], depth + 1)
        elif operator is parts.ATOMIC_GROUP:
            yield from _walk(argument, depth)
