"""Tokens: what programs and people from other machines show to the web server."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.views.tokens import NewTokenView, TokenView, token_view
from penstock.app.views.view import Page
from penstock.errors import Refused, Remedy, UsageError, nearest
from penstock.journal.access_events import LoginRefused

RoleName = Literal["viewer", "operator", "admin"]
ROLES: tuple[str, ...] = get_args(RoleName)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
USUAL_S, SHORTEST_S, LONGEST_S = 90 * 86_400.0, 60.0, 10 * 366 * 86_400.0


class Tokens(Noun):
    """Tokens for the web server."""

    def create(
        self,
        name: str | None,
        role: RoleName,
        *,
        expires_in_s: float | None = USUAL_S,
        actor: str | None = None,
        reason: str = "",
    ) -> NewTokenView:
        """Make a token. The answer is the only place where its text is; None is a token without an end.

        `name` is the actor of everything that is done with it; None makes one from the role.
        """
        if role not in ROLES:
            raise UsageError(f"there is no role {role!r}", nearest(role, ROLES), code="no_role")
        if name is None:
            name = f"{role}-{secrets.token_hex(3)}"
        if not NAME.fullmatch(name):
            raise UsageError(
                f"a token can't be called {name[:80]!r}",
                "use letters, digits and . _ @ + -, such as ci or ann@example.com",
                code="bad_token_name",
            )
        if expires_in_s is not None and not SHORTEST_S <= expires_in_s <= LONGEST_S:
            raise UsageError(
                "a token expires after a minute to ten years",
                "such as 90d; `never` is a token without an end",
                code="bad_expiry",
            )
        made = self._store.tokens.create(name, role, expires_in_s, who(actor), reason)
        if made is None:
            raise Refused(
                f"there is a token {name!r} already",
                code="token_exists",
                remedy=Remedy("tokens.revoke", name),
            )
        text, row = made
        return NewTokenView(
            text=text, name=name, role=role, prefix=row.prefix, expires_at=row.expires_at
        )

    def list(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[TokenView]:
        """Tokens, newest first; those that are expired or revoked go with the journal's retention."""
        size, now = size_of(limit), self._store.now()
        rows = self._store.tokens.newest(size + 1, place_of(cursor, int))
        return page_of(rows, size, lambda row: token_view(row, now), lambda row: row.id)

    def each(self, *, limit: int | None = None) -> Iterator[TokenView]:
        """Iterate over all of them, or the newest `limit`, page by page."""
        return each_item(lambda cursor, size: self.list(cursor=cursor, limit=size), limit)

    def revoke(self, name: str, *, actor: str | None = None, reason: str = "") -> bool:
        """End a token and the sessions that it began, at once; False if it was revoked already."""
        row = self._store.tokens.of_name(name)
        if row is None:
            raise UsageError(
                f"there is no token {name[:80]!r}", code="no_token", remedy=Remedy("tokens.list")
            )
        return self._store.tokens.revoke(row, who(actor), reason)

    def find(self, text: str) -> TokenView | None:
        """The token with this text, also an expired or revoked one; None if there is none."""
        row = self._store.tokens.find(text)
        return None if row is None else token_view(row, self._store.now())

    def get(self, token: int) -> TokenView | None:
        """The token with this number."""
        row = self._store.tokens.get(token)
        return None if row is None else token_view(row, self._store.now())

    def note_used(self, token: int) -> None:
        """Note that a token lets somebody in now: a write, so not for every request."""
        self._store.tokens.note_used(token)

    def note_refused(
        self,
        refusals: int,
        causes: Sequence[str],
        addresses: Sequence[str] = (),
        tokens: Sequence[str] = (),
    ) -> None:
        """Say in the journal that somebody was not let in; `tokens` are names, never texts."""
        event = LoginRefused(refusals, tuple(causes), tuple(addresses), tuple(tokens))
        self._store.tokens.note_refused(event)
