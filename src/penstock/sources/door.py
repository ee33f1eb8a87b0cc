"""The door: what every request with a rate asks before it goes out."""

from __future__ import annotations

from typing import Protocol

from penstock.gates.rates import Verdict, Want


class Door(Protocol):
    """Knows what all workers of all hosts send; the caller waits, this only answers."""

    async def ask(self, want: Want) -> Verdict: ...
