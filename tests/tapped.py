"""A store whose verbs are watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.store.noun import Noun


class Tapped:
    """A store, or a noun of one, that says which verb is wanted before it gives it: `schedules.due`."""

    def __init__(self, inner: object, tap: Callable[[str], None], path: str = "") -> None:
        self._inner, self._tap, self._path = inner, tap, path

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if isinstance(found, Noun):
            return Tapped(found, self._tap, f"{name}.")
        self._tap(self._path + name)
        return found
