"""The share of a canary: which pages, or which sources, the new release performs.

A key is in the share or not by its hash alone: every host decides the same, again after a restart, and in
the next run. The salt is the canary's own, so that the same pages are not always the ones that are tried
on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

# On whose side a run is measured.
Arm = Literal["canary", "control"]
_SPACE = 1 << 64


def is_in_share(key: str, percent: float, salt: str) -> bool:
    """Whether the new release performs it. What is in a share is in every larger one of the same salt."""
    return place_of(key, salt) * 100.0 < percent * _SPACE


def place_of(key: str, salt: str) -> int:
    """Where a key stands between 0 and 2^64."""
    digest = hashlib.blake2b(key.encode(), digest_size=8, key=salt.encode()[:64]).digest()
    return int.from_bytes(digest, "big")


def sources_in_share(keys: Sequence[str], percent: float, salt: str) -> list[str]:
    """The sources of a share: those that stand first, so that it is as large as it says, and at least one."""
    wanted = max(1, round(len(keys) * percent / 100.0)) if keys else 0
    return sorted(sorted(keys, key=lambda key: (place_of(key, salt), key))[:wanted])
