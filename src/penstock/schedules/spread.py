"""Spread: a place in a stretch of time that is a source's own, so that a thousand don't start together."""

from __future__ import annotations

import hashlib


def spread(key: str, width_s: float, what: str = "") -> float:
    """Somewhere from 0 up to the width; always the same for the same key, evenly strewn over all keys."""
    digest = hashlib.blake2b(f"{what}\0{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 * width_s
