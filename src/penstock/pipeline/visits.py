"""The pages that one attempt fetched, and whether anything about them was new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from penstock.jobs.effects import Extracted
from penstock.jobs.outcome import Unchanged

if TYPE_CHECKING:
    from penstock.http.response import Response

# With any of these a fetch brings something else than the page at its address.
_OF_THEIR_OWN = frozenset({"method", "headers", "body", "etag", "last_modified"})


def is_page(options: dict[str, Any]) -> bool:
    """Whether a fetch with these options brings just the page at its address."""
    return options.get("is_page", True) and _OF_THEIR_OWN.isdisjoint(options)


class Visits:
    """What an attempt of a page-level stage has fetched so far."""

    __slots__ = ("_left_alone", "_looked_at", "_others", "_pages")

    def __init__(self) -> None:
        self._pages: dict[str, tuple[Extracted, bool]] = {}
        self._looked_at: list[Extracted] = []
        self._left_alone: Unchanged | None = None
        self._others = 0

    def saw(self, url: str, response: Response, version: str, options: dict[str, Any]) -> None:
        if not is_page(options) or not response.content_hash:
            self._others += 1
            return
        page = Extracted(
            url, response.content_hash, response.snapshot_id, response.fetched_at, version
        )
        self._pages[url] = (page, response.is_done)

    def left_alone(self, unchanged: Unchanged) -> None:
        """A page was not handed over: it is as it was, and nothing else belonged to it then."""
        self._left_alone = unchanged
        if unchanged.page is not None:
            self._looked_at.append(unchanged.page)

    def go_on(self) -> None:
        """What is made of the pages depends on more than they hold: also unchanged ones are worked with."""
        self._others += 1

    @property
    def unchanged(self) -> Unchanged | None:
        """Why this attempt has nothing to do: no page that it fetched is other than when it was done with."""
        if self._others:
            return None
        if not self._pages:
            return self._left_alone
        if all(is_done for _, is_done in self._pages.values()):
            return Unchanged("all pages that belong to it are as they were")
        return None

    def done(self, is_same: bool = False) -> list[Extracted]:
        """What is done with when the attempt ends well."""
        parts = len(self._pages) + self._others
        pages = [replace(page, parts=parts, is_same=is_same) for page, _ in self._pages.values()]
        return [*pages, *self._looked_at]
