"""The pages of the menu, in its order."""

from __future__ import annotations

from typing import NamedTuple


class Item(NamedTuple):
    """One entry of the menu; `key` opens it after `g`."""

    label: str
    path: str
    key: str


NAVIGATION = (
    Item("Overview", "/", "o"),
    Item("Alerts", "/alerts", "a"),
    Item("Sources", "/sources", "s"),
    Item("Runs", "/runs", "r"),
    Item("Quarantine", "/quarantine", "q"),
    Item("Records", "/records", "d"),
    Item("Sites", "/sites", "i"),
    Item("Schedules", "/schedules", "c"),
    Item("Releases", "/releases", "l"),
    Item("Canaries", "/canaries", "n"),
    Item("Runbooks", "/runbooks", "k"),
    Item("Workers", "/workers", "w"),
    Item("Budgets", "/budgets", "b"),
    Item("Hooks", "/hooks", "h"),
    Item("Events", "/events", "e"),
    Item("Audit", "/audit", "u"),
)
# For a project in several databases.
ALL_CELLS = Item("Cells", "/cells", "m")


def navigation_of(*, has_cells: bool) -> tuple[Item, ...]:
    """The menu of a project: the first entry of one with cells is all of them."""
    return (ALL_CELLS, *NAVIGATION) if has_cells else NAVIGATION
