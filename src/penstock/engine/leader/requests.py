"""What clients of the SQL interface have asked for: whoever leads performs it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.project import Project
from penstock.project.sql_requests import describe_sources, perform_requests
from penstock.store.store import Store


class RequestChore:
    """Performs what is in the inbox, where clients can put anything there at all."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store

    def plan(self) -> None:
        """Have clients see the sources as this project configures them; only where somebody looks."""
        if self._store.inbox.described():
            describe_sources(self._project)

    def look(self, may_go_on: Callable[[], bool] = lambda: True) -> int:
        """Perform what is due; nothing is opened for it where there is nothing."""
        if not self._store.inbox.due(limit=1):
            return 0
        return perform_requests(self._project, may_go_on)
