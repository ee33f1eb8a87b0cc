"""Names below `localhost`: this machine, without asking anybody (RFC 6761, section 6.3)."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult

LOOPBACK = "127.0.0.1"


def is_localhost(host: str) -> bool:
    return host.rstrip(".").lower().endswith(".localhost")


class LocalhostNames(AbstractResolver):
    """Answers `*.localhost` itself, as browsers do: most resolvers of systems don't know such names.

    Whether loopback may be reached is decided where every answer is checked.
    """

    def __init__(self, others: AbstractResolver) -> None:
        self._others = others

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if not is_localhost(host):
            return await self._others.resolve(host, port, family)
        return [
            ResolveResult(
                hostname=host, host=LOOPBACK, port=port, family=socket.AF_INET, proto=0, flags=0
            )
        ]

    async def close(self) -> None:
        await self._others.close()
