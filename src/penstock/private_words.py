"""Hashes in the place of addresses, paths and keys of private sources.

The same text has the same hash within a source, so that things can still be told apart and counted.
"""

from __future__ import annotations

import hashlib
import re

HASH = re.compile(r"#[0-9a-f]{12}")


def hashed(text: str, source: str) -> str:
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6)
    digest.update(source.encode())
    return f"#{digest.hexdigest()}"
