"""Who calls a tool: the person or token, the client that speaks for them, and what both may do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.app.verbs.roles import ROLES, Identity, Role

LONGEST_CLIENT = 40
UNNAMED = "unnamed-client"
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")


def client_name(said: object) -> str:
    """What a client calls itself, as one short word: it is a claim, and stands in the journal."""
    text = said if isinstance(said, str) else ""
    return _ODD.sub("-", text[:1_000]).strip("-.")[:LONGEST_CLIENT] or UNNAMED


def smaller(one: Role, other: Role) -> Role:
    return min(one, other, key=ROLES.index)


@dataclass(frozen=True, slots=True)
class Caller:
    """`identity` has proven who they are; its role is the smaller one of its own and the server's."""

    identity: Identity
    client: str

    @property
    def role(self) -> Role:
        return self.identity.role

    @property
    def actor(self) -> Identity:
        """As the journal names them."""
        name = f"{self.identity.name} via {self.client}"
        return Identity(name, self.identity.role, self.identity.token)
