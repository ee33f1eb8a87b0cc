"""Secrets: whatever came in through ${NAME} is never told to anyone."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST_SECRET = 4


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret masked, also where it is URL-encoded or in base64.

    Values shorter than four characters are left alone: masking every `8` because SLOTS=8 came from
    the environment would hide the message and protect nothing.
    """
    for spelling in _spellings(frozenset(secrets)):
        text = text.replace(spelling, MASK)
    return text


@lru_cache(maxsize=8)
def _spellings(secrets: frozenset[str]) -> tuple[str, ...]:
    found: set[str] = set()
    for secret in secrets:
        if len(secret) < SHORTEST_SECRET:
            continue
        encoded = secret.encode("utf-8", "surrogateescape")
        found |= {secret, quote(encoded, safe=""), quote(encoded), quote_plus(encoded)}
        found |= {base64.b64encode(encoded).decode(), base64.urlsafe_b64encode(encoded).decode()}
    # The longest first: a secret that contains another would otherwise leave its rest behind.
    return tuple(sorted(found, key=lambda spelling: (-len(spelling), spelling)))
