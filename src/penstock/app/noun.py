"""The base of all nouns."""

from __future__ import annotations

from inspect import isfunction
from typing import TYPE_CHECKING

from penstock.app.privacy import concealing
from penstock.project import default_actor

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.store import Store


class Noun:
    """What a project has many of, with its verbs. It keeps no state: two threads may use one at once.

    What a verb answers shows nothing of private sources unless that is asked for (`app/privacy.py`).
    """

    def __init_subclass__(cls) -> None:
        for name, verb in list(vars(cls).items()):
            if isfunction(verb) and not name.startswith("_"):
                setattr(cls, name, concealing(verb))

    def __init__(self, project: Nouns) -> None:
        self._project = project

    @property
    def _store(self) -> Store:
        """The calling thread's connection: asked for in each verb, never kept."""
        return self._project.connection


def who(actor: str | None) -> str:
    """Who acts, for the journal: whoever is named, else the account that the program runs as."""
    return actor or default_actor()
