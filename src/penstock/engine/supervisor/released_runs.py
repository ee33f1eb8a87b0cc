"""Runs that releases perform: which there are now, with the files of each written where workers find them.

Nothing of a release is loaded here. Drafts that follow a run which has ended are started on the way.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import PenstockError, StoreUnreachable
from penstock.project import Project
from penstock.project.release_folder import release_folder
from penstock.store.promises import LEADER
from penstock.store.store import Store


class ReleasedRuns:
    """What a supervisor asks once a second, in the store's thread."""

    def __init__(self, project: Project, store: Store, say: Callable[[str, str], None]) -> None:
        self._project = project
        self._store = store
        self._say = say
        self._written: set[str] = set()

    def look(self) -> dict[int, str]:
        """The runs that can be performed now, each with its release."""
        self._store.followers.start(LEADER)
        return {
            run_id: release
            for run_id, release in self._store.followers.by_releases()
            if self._is_there(run_id, release)
        }

    def _is_there(self, run_id: int, release: str) -> bool:
        if release in self._written:
            return True
        try:
            release_folder(self._project, release)
        except StoreUnreachable:
            raise
        except (PenstockError, OSError) as error:
            self._say(
                f"run {run_id} waits for release {release[:12]}: {error}", f"release {release}"
            )
            return False
        self._written.add(release)
        return True
