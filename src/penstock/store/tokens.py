"""Tokens: who may come in from outside, with which role and until when.

A token is 256 random bits, so its SHA-256 can't be turned back and needs no salt. It is found by its prefix,
which is no secret, and its hash is compared in constant time, also where there is no such prefix.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Literal

import msgspec

from penstock.journal import access_events as events
from penstock.journal.event import Event
from penstock.store.database import LAST_ID
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun

MARK = "penstock"
ID_BYTES, SECRET_BYTES = 5, 32
LONGEST = 200
NO_HASH = "0" * 64
# Who refuses logins.
SERVER = "web"


class TokenRow(msgspec.Struct, frozen=True):
    """A token without its text, which nobody has but whom it was given to."""

    id: int
    name: str
    role: str
    prefix: str
    created_at: float
    actor: str
    reason: str
    expires_at: float | None
    used_at: float | None
    revoked_at: float | None

    def state(self, now: float) -> Literal["valid", "expired", "revoked"]:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


class Tokens(Noun):
    """The verbs of tokens."""

    def create(
        self, name: str, role: str, expires_in_s: float | None, actor: str, reason: str
    ) -> tuple[str, TokenRow] | None:
        """A new token: its text, which is told once, and its row. None if a token has this name."""
        prefix = f"{MARK}_{secrets.token_hex(ID_BYTES)}"
        text = f"{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
        with self._db.writing() as now:
            expires_at = None if expires_in_s is None else now + expires_in_s
            found = self._db.rows(
                "add_token",
                token_name=name,
                role=role,
                prefix=prefix,
                hash=_hash(text),
                now=now,
                actor=actor,
                reason=reason,
                expires_at=expires_at,
            )
            if not found:
                return None
            event = events.TokenCreated(name, prefix, role, expires_at or 0.0, reason)
            self._tell(event, now, actor)
            row = TokenRow(
                found[0][0], name, role, prefix, now, actor, reason, expires_at, None, None
            )
            return text, row

    def find(self, text: str) -> TokenRow | None:
        """The token with this text, in whatever state it is; None if there is none."""
        prefix = text[: len(MARK) + 1 + 2 * ID_BYTES]
        # What no token can be is looked for, too: the answer takes as long.
        known = prefix if len(text) <= LONGEST and prefix.isascii() and prefix.isprintable() else ""
        rows = self._db.rows("token_of_prefix", prefix=known)
        kept = rows[0][-1] if rows else NO_HASH
        is_it = hmac.compare_digest(_hash(text[: LONGEST + 1]), kept)
        return TokenRow(*rows[0][:-1]) if rows and is_it else None

    def get(self, token_id: int) -> TokenRow | None:
        rows = self._db.rows("token_of_id", id=token_id)
        return TokenRow(*rows[0]) if rows else None

    def of_name(self, name: str) -> TokenRow | None:
        """The one that is not revoked, else the newest of this name."""
        rows = self._db.rows("token_of_name", token_name=name)
        return TokenRow(*rows[0]) if rows else None

    def newest(self, limit: int, before_id: int | None = None) -> list[TokenRow]:
        """The newest first; with `before_id`, those that are older than this one."""
        before = LAST_ID if before_id is None else before_id
        return [TokenRow(*row) for row in self._db.rows("tokens", before_id=before, limit=limit)]

    def revoke(self, row: TokenRow, actor: str, reason: str) -> bool:
        """End a token; False if it was revoked already."""
        with self._db.writing() as now:
            if not self._db.do("revoke_token", id=row.id, now=now):
                return False
            self._tell(events.TokenRevoked(row.name, row.prefix, row.role, reason), now, actor)
            return True

    def note_used(self, token_id: int) -> None:
        """Note that a token lets somebody in now."""
        with self._db.writing() as now:
            self._db.do("note_token_used", id=token_id, at=now)

    def note_refused(self, event: events.LoginRefused) -> None:
        """Say in the journal who was not let in."""
        with self._db.writing() as now:
            self._tell(event, now, SERVER)

    def _tell(self, event: Event, now: float, actor: str) -> None:
        ledger = Ledger(self._db, now)
        ledger.journal(event, actor=actor)
        ledger.write()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
