"""Who sends a request, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody may do: each role may do what the one before it may, and more."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, needed: Role) -> bool:
        """Whether this role may do what needs that one."""
        return ROLES.index(self) >= ROLES.index(needed)


ROLES = tuple(Role)


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who has proven who they are. `name` is the actor of everything they do."""

    name: str
    role: Role
    # The token that they showed; None for whoever came by the one-time link.
    token: int | None = None

    def may(self, needed: Role) -> bool:
        return self.role.covers(needed)
