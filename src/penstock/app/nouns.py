"""The nouns of a project, each imported when it is first used: a command that only looks starts at once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from penstock import project

if TYPE_CHECKING:
    from penstock.app.breakers import Breakers
    from penstock.app.budgets import Budgets
    from penstock.app.checkpoints import Checkpoints


class Nouns(project.Project):
    """What a project has, by name."""

    def now(self) -> float:
        """The time by the store's clock, the only one that counts for what is due."""
        return self.connection.now()

    @cached_property
    def breakers(self) -> Breakers:
        """What is left alone because it fails."""
        from penstock.app.breakers import Breakers

        return Breakers(self)

    @cached_property
    def budgets(self) -> Budgets:
        """What is used and left of budgets."""
        from penstock.app.budgets import Budgets

        return Budgets(self)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """How far each partition of a source has come."""
        from penstock.app.checkpoints import Checkpoints

        return Checkpoints(self)
