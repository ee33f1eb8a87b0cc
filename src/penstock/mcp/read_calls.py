"""Tools and resources that look: one read, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_origin

from penstock.app.verbs.answers import as_answer
from penstock.app.verbs.parameters import converted
from penstock.app.verbs.reads import Read
from penstock.app.views.view import Page
from penstock.errors import UsageError
from penstock.mcp.bounds import Cut, page_within, within
from penstock.mcp.tools import MOST_ROWS, USUAL_ROWS

if TYPE_CHECKING:
    from penstock.app import Project

Clean = Callable[[Any], Any]


def arguments_of(read: Read, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the verb is called with. What is null was left out; numbers may be written as text."""
    present = {name: each for name, each in given.items() if each is not None}
    of_path = {name: each for name, each in present.items() if name in read.path_names}
    of_query = {name: each for name, each in present.items() if name not in read.path_names}
    if "limit" in read.takes:
        of_query.setdefault("limit", USUAL_ROWS)
    found = {
        **converted(of_path, read.path_parameters, strict=False),
        **converted(of_query, read.parameters, strict=False),
    }
    if found.get("limit", 0) > MOST_ROWS:
        raise UsageError(
            f"the limit is {MOST_ROWS}", "read on with the cursor `next`", code="bad_limit"
        )
    return found


def looked(project: Project, read: Read, given: Mapping[str, Any], clean: Clean) -> tuple[Any, Cut]:
    """What a read answers, as clean JSON of bounded size, and what had to be cut."""
    if get_origin(read.answer) is Page and "limit" in read.takes:
        return page_within(
            lambda rows: clean(as_answer(read.call(project, {**given, "limit": rows}))),
            given["limit"],
        )
    return within(clean(as_answer(read.call(project, given))))
