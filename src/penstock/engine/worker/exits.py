"""What a worker and its supervisor have agreed on: how long one trusts itself, and how it ends."""

from __future__ import annotations

from penstock.store.workers import LEASE_S

MARGIN_S = 3.0
# How long after a beat was asked for a worker trusts itself; then it stops, before its lease can end.
TRUST_S = LEASE_S - MARGIN_S
# Numbers that no step is likely to end the process with: the supervisor acts on them.
EXIT_DRAINED = 0
EXIT_UNFIT = 94
EXIT_BROKEN = 95
EXIT_BURIED = 96
EXIT_RECYCLE = 97
EXIT_LOST = 98
EXIT_STUCK = 99
