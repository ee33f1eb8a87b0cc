"""Circuit breakers of sources and hosts."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_within
from penstock.app.views.breakers import BreakerView, breaker_view
from penstock.app.views.view import Page
from penstock.errors import UsageError
from penstock.settings import normalise_source

SHORTEST_S = 1.0


class Breakers(Noun):
    """The breakers of sources and hosts that have failed."""

    def list(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[BreakerView]:
        """What has failed, closed ones last."""
        views = sorted((breaker_view(row) for row in self._store.breakers.all()), key=_place)
        return page_within(views, cursor, limit, lambda view: view, _place, tuple[bool, str])

    def each(self) -> Iterator[BreakerView]:
        """Iterate over all of them, page by page."""
        return each_item(lambda cursor, limit: self.list(cursor=cursor, limit=limit))

    def key(self, name: str) -> str:
        """The key of the breaker that is meant by a source's name in any spelling, or by a host."""
        _ = self._project.source_ids  # a source that is new in the file becomes known to the store
        return self._store.breakers.key(name, normalise_source(name))

    def open(self, name: str, for_s: float, *, actor: str | None = None, reason: str = "") -> bool:
        """Ask nothing of a source or host for so long, then try it with care; False if it was open.

        What is running goes on to its end, jobs wait in their queue and lose no try.
        """
        if for_s < SHORTEST_S:
            raise UsageError("a breaker is open for at least 1s", code="too_short")
        return self._store.breakers.open(self.key(name), for_s, who(actor), reason)

    def close(self, name: str, *, actor: str | None = None, reason: str = "") -> bool:
        """Ask a source or host as usual again; False if its breaker is closed."""
        return self._store.breakers.close(self.key(name), who(actor), reason)


def _place(view: BreakerView) -> tuple[bool, str]:
    return view.state == "closed", view.key
