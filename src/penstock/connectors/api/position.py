"""The position of a page: all that its job needs to ask for it, and to tell it from the ones before."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_encode = msgspec.json.Encoder(order="deterministic").encode


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page to compare later ones with. It moves on after `left` more, twice as many each time.

    So a circle of pages of any length is recognised, whatever it began with, and only one page is remembered.
    """

    at: str = ""
    content: str = ""
    left: int = 0
    power: int = 1

    def moved(self, at: str, content: str) -> Mark:
        if self.left > 0:
            return msgspec.structs.replace(self, left=self.left - 1)
        return Mark(at, content, 2 * self.power - 1, 2 * self.power)


class Position(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which page it is: the `number`th of the walk. `at` is its page number, offset, cursor or URL.

    `paging` and `records` are what was recognised from the first page. `up_to` is the last page that is asked
    for beside this one; the ones before it lead nowhere. `first` tells the content of the first page.
    """

    number: int = 1
    at: int | str | None = None
    paging: dict[str, Any] = {}
    records: str = ""
    up_to: int = 0
    # How many records the first page has: what the API takes for a page, whatever size was asked for.
    full: int = 0
    first: str = ""
    before: str = ""
    mark: Mark = Mark()
    since: str = ""
    # The latest change among the records so far, what the checkpoint was, and when the walk began.
    high: float | None = None
    was: float | None = None
    began_at: float = 0.0

    @property
    def name(self) -> str:
        return f"page {self.number}"


def digest(value: Any) -> str:
    """Equal for equal JSON."""
    return hashlib.sha256(_encode(value)).hexdigest()[:24]
