"""Events about who may come in from outside, and who was not let in."""

from __future__ import annotations

from typing import ClassVar

from penstock.counting import count
from penstock.journal.event import Event, with_reason

OPERATOR = "an operator"


class TokenEvent(Event, frozen=True, omit_defaults=True):
    """`token` is the name of the token, `prefix` the beginning of its text, which opens nothing."""

    by: ClassVar[str] = OPERATOR

    token: str
    prefix: str = ""
    role: str = ""


class TokenCreated(TokenEvent, frozen=True, omit_defaults=True):
    """Somebody made a token for the web server; without `expires_at` it has no end."""

    kind: ClassVar[str] = "token.created"

    expires_at: float = 0.0
    reason: str = ""

    def sentence(self) -> str:
        return with_reason(f"{self.token} ({self.role})", self.reason)


class TokenRevoked(TokenEvent, frozen=True, omit_defaults=True):
    """A token lets nobody in any more, nor do the sessions that it began."""

    kind: ClassVar[str] = "token.revoked"

    reason: str = ""

    def sentence(self) -> str:
        return with_reason(f"{self.token} ({self.role})", self.reason)


class LoginRefused(Event, frozen=True, omit_defaults=True):
    """The web server did not let somebody in.

    The first refusal is told at once, those of the next minute together. `causes` are what was wrong:
    `unknown_token`, `expired_token`, `revoked_token`, `bad_link` or `too_many_failures`; `tokens` the names
    of those that were expired or revoked; `addresses` some of those that the requests came from.
    """

    kind: ClassVar[str] = "login.refused"
    by: ClassVar[str] = "the web server"

    refusals: int
    causes: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()

    def sentence(self) -> str:
        why = ", ".join(cause.replace("_", " ") for cause in self.causes)
        return (
            f"{count(self.refusals, 'login')} from {', '.join(self.addresses) or 'nowhere'}: {why}"
        )


EVENTS: tuple[type[Event], ...] = (TokenCreated, TokenRevoked, LoginRefused)
