"""Logins that failed: how many are let through, and how the journal tells of them.

Both are bounded whatever comes: nothing here grows with the number of requests or addresses.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from penstock.errors import StoreError

# So many at once, and so many a minute.
MOST_OF_ADDRESS, MOST_IN_ALL = 10, 200
MINUTE_S = 60.0
MOST_ADDRESSES = 1_000
# How many addresses, causes and names one event lists.
MOST_TOLD = 8


def group_of(address: str) -> str:
    """What counts as one address: of IPv6 a whole network of the smallest size that is given out."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


@dataclass(slots=True)
class _Bucket:
    """Fills up by itself within a minute; each failure takes one out."""

    size: float
    left: float
    at: float

    def wait_s(self, now: float) -> float:
        """How long until there is one."""
        self.left = min(self.size, self.left + (now - self.at) * self.size / MINUTE_S)
        self.at = now
        return 0.0 if self.left >= 1 else (1 - self.left) * MINUTE_S / self.size

    def take(self, now: float) -> None:
        self.wait_s(now)
        self.left = max(0.0, self.left - 1)


class FailureLimit:
    """How many logins may fail, from one address and from all of them."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._all = _Bucket(MOST_IN_ALL, MOST_IN_ALL, monotonic())
        # The one that failed last is at the end; when there are too many, the first one goes.
        self._by_address: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_address)

    def wait_s(self, address: str) -> float:
        """How long whoever comes from there has to wait; 0 if not at all."""
        now = self._monotonic()
        own = self._by_address.get(group_of(address))
        return max(self._all.wait_s(now), own.wait_s(now) if own is not None else 0.0)

    def count(self, address: str) -> None:
        """A login from there has failed."""
        now, key = self._monotonic(), group_of(address)
        own = self._by_address.pop(key, None) or _Bucket(MOST_OF_ADDRESS, MOST_OF_ADDRESS, now)
        self._by_address[key] = own
        while len(self._by_address) > MOST_ADDRESSES:
            self._by_address.popitem(last=False)
        own.take(now)
        self._all.take(now)


@dataclass(slots=True)
class Refusals:
    """Logins that were refused since the journal was last told."""

    number: int = 0
    causes: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def add(self, cause: str, address: str, token: str) -> None:
        self.number += 1
        for known, new in ((self.causes, cause), (self.addresses, address), (self.tokens, token)):
            if new and new not in known and len(known) < MOST_TOLD:
                known.append(new)


class RefusalJournal:
    """Tells the journal of refused logins: of the first at once, of those within a minute together."""

    def __init__(
        self, write: Callable[[Refusals], Awaitable[None]], every_s: float = MINUTE_S
    ) -> None:
        self._write = write
        self._every_s = every_s
        self._refusals = Refusals()
        self._task: asyncio.Task[None] | None = None

    def add(self, cause: str, address: str, token: str = "") -> None:
        self._refusals.add(cause, address, token)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        while self._refusals.number:
            await self._tell()
            await asyncio.sleep(self._every_s)

    async def _tell(self) -> None:
        told, self._refusals = self._refusals, Refusals()
        try:
            await self._write(told)
        except StoreError:
            # The database is away: they are told together with those that come.
            self._refusals.number += told.number
            self._refusals.causes = told.causes
            self._refusals.addresses, self._refusals.tokens = told.addresses, told.tokens

    async def close(self) -> None:
        """Tell the rest, as far as the database answers."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        if self._refusals.number:
            await self._tell()
