"""SLA: what the configuration says of sources is held against what has become of them.

Done by the host that leads, as often as a person would want to know.
"""

from __future__ import annotations

from penstock.project import Project
from penstock.store.promises import Promise
from penstock.store.store import Store

EVERY_S = 15.0
NOTHING = (None, None, None)


class SlaChore:
    """Looks whether a source and its schema are as fresh, and its runs as quick, as was promised."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store
        self._look_at = float("-inf")
        self._promises: list[Promise] | None = None

    def look(self) -> int:
        """Note what was broken and what is kept again, if it is time; answers how many that were."""
        now = self._project.clock.monotonic()
        if now < self._look_at:
            return 0
        self._look_at = now + EVERY_S
        if self._promises is None:
            self._promises = self._read()
        # Also without any: what is open of a promise that was taken back has ended.
        return self._store.promises.watch(self._promises)

    def _read(self) -> list[Promise]:
        sources = self._project.settings.sources
        promised = {
            key: source
            for key, source in sources.items()
            if (source.freshness_s, source.deadline_s, source.schema_freshness_s) != NOTHING
        }
        ids = self._store.sources.ensure(list(promised)) if promised else {}
        return [
            Promise(ids[key], key, source.freshness_s, source.deadline_s, source.schema_freshness_s)
            for key, source in promised.items()
        ]
