"""The request limiter: what requests ask before they go out, and where they report what became of them."""

from __future__ import annotations

from typing import Protocol

from penstock.gates.rates import RateDecision, RateRequest, Sent


class RequestLimiter(Protocol):
    """Knows what all workers of all hosts send; the caller waits, this only answers."""

    async def ask(self, want: RateRequest) -> RateDecision:
        """May this request go out, and when?"""
        ...

    def is_late(self, want: RateRequest, verdict: RateDecision, now: float) -> bool:
        """Whether its place is over by now (monotonic): it asks again."""
        ...

    def told(self, want: RateRequest, sent: Sent) -> None:
        """This became of a request that was let through."""
        ...

    def close(self, host: str, for_s: float) -> None:
        """This host asked to be left alone: tell the others, soon."""
        ...
