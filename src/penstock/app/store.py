"""The store of a project as a whole: the database that everything is in."""

from __future__ import annotations

from typing import Any

from penstock.app.noun import Noun


class ProjectStore(Noun):
    """The verbs of the database itself.

    `project.store` was the connection itself in earlier releases; what it had is still found here, on the
    calling thread's connection, until the next release.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
