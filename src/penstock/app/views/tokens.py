"""Tokens as front ends see them: never with their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.tokens import TokenRow

TokenState = Literal["valid", "expired", "revoked"]


class TokenView(View, frozen=True, kw_only=True):
    """A token: `valid`, `expired` or `revoked`. `prefix` is how its text begins.

    `used_at` is when it let somebody in, to within a minute.
    """

    id: int
    name: str
    role: str
    prefix: str
    state: TokenState
    created_at: Time
    created_by: str
    reason: str
    expires_at: Time | None
    used_at: Time | None
    revoked_at: Time | None


class NewTokenView(View, frozen=True, kw_only=True):
    """A token that was just made. Its text is told this once: only a hash of it is stored."""

    text: str = msgspec.field(name="token")
    name: str
    role: str
    prefix: str
    expires_at: Time | None


def token_view(row: TokenRow, now: float) -> TokenView:
    return TokenView(
        id=row.id,
        name=row.name,
        role=row.role,
        prefix=row.prefix,
        state=row.state(now),
        created_at=row.created_at,
        created_by=row.actor,
        reason=row.reason,
        expires_at=row.expires_at,
        used_at=row.used_at,
        revoked_at=row.revoked_at,
    )
