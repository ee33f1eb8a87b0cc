"""The sources of this cell while workers run: another one came, or one has left for another cell."""

from __future__ import annotations

from collections.abc import Callable

from penstock.counting import count
from penstock.engine.worker.calls import InOneThread
from penstock.project import Project
from penstock.store.store import Store


class CellChanged(Exception):
    """The workers were drained because this cell has other sources now: they are to start with these."""


class CellWatch:
    """Makes way for workers that know the sources of their cell as it is now."""

    def __init__(
        self,
        project: Project,
        store: Store,
        calls: InOneThread,
        make_way: Callable[[], None],
        tell: Callable[[str], None],
        *,
        follows: bool,
    ) -> None:
        self._project = project
        self._store = store
        self._calls = calls
        self._make_way = make_way
        self._tell = tell
        self._follows = follows and project.settings.cell is not None
        self._known = frozenset(project.settings.sources)
        # Whether the workers were drained for it.
        self.is_due = False

    async def look(self) -> None:
        if not self._follows or self.is_due:
            return
        here = await self._calls(lambda: self._project.sources_here(self._store))
        if here == self._known:
            return
        came, went = len(here - self._known), len(self._known - here)
        self._tell(
            f"{count(came, 'source')} came to this cell and {went} left: finishing running work, "
            "then going on with those that are here"
        )
        self.is_due = True
        self._make_way()
