"""The release of the environment while workers run: another one came, and they may be something else now."""

from __future__ import annotations

from collections.abc import Callable

from penstock.engine.supervisor.looks import Looks
from penstock.errors import Refused
from penstock.project import Project
from penstock.project.running_release import note_other_release
from penstock.store.store import Store


class ReleaseWatch:
    """Says that workers are not the release that came; where it is required, they stop."""

    def __init__(
        self,
        project: Project,
        store: Store,
        looks: Looks,
        stop: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        self._project = project
        self._store = store
        self._looks = looks
        self._stop = stop
        self._tell = tell
        self._seen: str | None = None
        self._has_looked = False
        # Why the workers were stopped, if they were.
        self.refusal: Refused | None = None

    async def look(self) -> None:
        if self.refusal is not None:
            return
        running = await self._looks(self._store.releases.running)
        # What ran at the start was compared when the store was opened.
        is_new, self._seen = self._has_looked and running != self._seen, running
        self._has_looked = True
        if not is_new:
            return
        try:
            await self._looks(lambda: note_other_release(self._project, self._store, self._tell))
        except Refused as refusal:
            self.refusal = refusal
            self._tell(f"{refusal.message}; finishing running work, then stopping")
            self._stop()
