"""NAT64: IPv6 addresses behind which a gateway of this network reaches an IPv4 address.

Every network may choose its own prefix (RFC 6052), so no list knows them. A network that uses one says
so by what it answers for a name that has no IPv6 address (RFC 7050).
"""

from __future__ import annotations

import ipaddress
import socket

from aiohttp.abc import AbstractResolver

from penstock.clock import Clock

WELL_KNOWN = "ipv4only.arpa"
FRESH_S = 600.0
_ANSWERS = (bytes([192, 0, 0, 170]), bytes([192, 0, 0, 171]))
# Where the four bytes of the IPv4 address stand, by the length of the prefix.
_PLACES = {
    32: (4, 5, 6, 7),
    40: (5, 6, 7, 9),
    48: (6, 7, 9, 10),
    56: (7, 9, 10, 11),
    64: (9, 10, 11, 12),
    96: (12, 13, 14, 15),
}


class Nat64:
    """What this network's prefixes are, asked for once in a while and only when an IPv6 address is met."""

    def __init__(self, resolver: AbstractResolver, clock: Clock) -> None:
        self._resolver = resolver
        self._clock = clock
        self._prefixes: frozenset[tuple[int, bytes]] = frozenset()
        self._until = float("-inf")

    async def behind(self, address: str) -> str | None:
        """The IPv4 address that a connection to this one ends at; None if it is an ordinary one."""
        packed = _packed(address)
        if packed is None:
            return None
        if self._clock.monotonic() >= self._until:
            self._prefixes = await self._ask()
            self._until = self._clock.monotonic() + FRESH_S
        for length, prefix in self._prefixes:
            if packed.startswith(prefix):
                return str(ipaddress.IPv4Address(_embedded(packed, length)))
        return None

    async def _ask(self) -> frozenset[tuple[int, bytes]]:
        try:
            answers = await self._resolver.resolve(WELL_KNOWN, 0, socket.AF_INET6)
        except OSError:
            return frozenset()
        found = {
            (length, packed[: length // 8])
            for answer in answers
            if (packed := _packed(answer["host"])) is not None
            for length in _PLACES
            if _embedded(packed, length) in _ANSWERS
        }
        return frozenset(found)


def _embedded(packed: bytes, length: int) -> bytes:
    return bytes(packed[place] for place in _PLACES[length])


def _packed(address: str) -> bytes | None:
    try:
        return ipaddress.IPv6Address(address.partition("%")[0]).packed
    except ValueError:
        return None
