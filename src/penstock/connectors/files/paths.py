"""Paths of files as keys and addresses: any name has one, and no two names have the same."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote_to_bytes

# A page's address may have 2,000 bytes in the store.
LONGEST = 1_900
# What can't stand in text: control characters, line ends of every kind, bytes that are no UTF-8.
_ODD = re.compile("[%\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


def key_of(path: str) -> str:
    """The path as text that can be stored: what can't be is written as %XX, and so is % itself."""
    return _ODD.sub(lambda found: "".join(f"%{byte:02X}" for byte in os.fsencode(found[0])), path)


def path_of(key: str) -> str:
    """The path that a key is of."""
    return os.fsdecode(unquote_to_bytes(key.encode("utf-8")))


def prefix_of(source: str) -> str:
    """What the addresses of a source's files begin with."""
    return f"files://{source}/"


def is_too_long(address: str) -> bool:
    return len(address.encode("utf-8")) > LONGEST
