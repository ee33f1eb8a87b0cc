"""A network and a clock that exist only in the test."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.gates.rates import RateDecision, RateRequest, Sent, give_place
from penstock.http.failures import FetchError
from penstock.http.fetch import Fetcher
from penstock.http.network import RawResponse, Request

Answer = RawResponse | FetchError | Callable[[Request], RawResponse]


def raw(status: int = 200, body: bytes = b"", **headers: str) -> RawResponse:
    return RawResponse(status, {n.replace("_", "-"): v for n, v in headers.items()}, body)


@dataclass
class FakeClock:
    """Time that passes when it is told to."""

    time: float = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time - 1_600_000_000.0

    def advance(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class FakeNetwork:
    """Answers by URL, 404 for the rest, and keeps every request."""

    answers: dict[str, Answer] = field(default_factory=dict)
    sent: list[Request] = field(default_factory=list)
    is_closed: bool = False

    async def send(self, request: Request) -> RawResponse:
        self.sent.append(request)
        found = self.answers.get(request.url, raw(404))
        if isinstance(found, FetchError):
            raise found
        return found if isinstance(found, RawResponse) else found(request)

    async def close(self) -> None:
        self.is_closed = True

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.sent]


@dataclass
class FakeDoor:
    """Gives places as the store does, and remembers them only here."""

    clock: FakeClock = field(default_factory=FakeClock)
    next_at: dict[str, float] = field(default_factory=dict)
    closed: dict[str, float] = field(default_factory=dict)
    sent: list[tuple[RateRequest, Sent]] = field(default_factory=list)

    async def ask(self, want: RateRequest) -> RateDecision:
        return give_place(want, self.next_at, self.clock.now())

    def is_late(self, want: RateRequest, verdict: RateDecision, now: float) -> bool:
        return False

    def told(self, want: RateRequest, sent: Sent) -> None:
        self.sent.append((want, sent))

    def close(self, host: str, for_s: float) -> None:
        self.closed[host] = for_s


def a_fetcher(network: FakeNetwork, clock: FakeClock | None = None) -> Fetcher:
    clock = clock or FakeClock()
    return Fetcher(network, clock, random.Random(7), FakeDoor(clock))
