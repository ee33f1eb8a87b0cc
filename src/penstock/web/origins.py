"""The origins that a server answers under: scheme, host and port, compared exactly.

A request for another host name comes from a page whose name was made to resolve to this machine
(DNS rebinding); one from another origin comes from another site's page.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from penstock.errors import UsageError

USUAL_PORTS = {"http": 80, "https": 443}
LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a page comes from."""

    scheme: str
    host: str
    port: int

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    def __str__(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == USUAL_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{shown}{port}"


def origin_of(text: str) -> Origin:
    """An origin as it is configured: `https://penstock.example.com`."""
    found = _parsed(text)
    if found is None:
        raise UsageError(
            f"{text!r} is not an origin",
            "write scheme, host and, if it is not the usual one, port: https://penstock.example.com",
            code="bad_origin",
        )
    return found


def _parsed(text: str) -> Origin | None:
    try:
        at = urlsplit(text)
        host, port = at.hostname or "", at.port
    except ValueError:
        return None
    has_more = at.path.rstrip("/") or at.query or at.fragment or at.username is not None
    if at.scheme not in USUAL_PORTS or not host or has_more:
        return None
    return Origin(at.scheme, host, port or USUAL_PORTS[at.scheme])


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Origins:
    """Those of one server: its own addresses and the configured ones."""

    def __init__(self, scheme: str, hosts: tuple[str, ...], port: int, more: tuple[Origin, ...]):
        own = (Origin(scheme, host.lower(), port) for host in hosts)
        self._scheme = scheme
        self.known = (*more, *own)

    def of_host(self, header: str, server: tuple[str, int] | None) -> Origin | None:
        """The origin that a request's Host names; None if it is none of ours.

        `server` is the address at which the connection arrived: no name has to resolve to it, so a
        request for it is not a rebound one. Beyond this machine that takes TLS: a token or a cookie must not
        travel in the clear.
        """
        if "/" in header or "@" in header:
            return None
        for scheme in ("https", "http"):
            asked = _parsed(f"{scheme}://{header}")
            if asked is not None and asked in self.known:
                return asked
        asked = _parsed(f"{self._scheme}://{header}")
        if asked is None or server is None or (asked.host, asked.port) != server:
            return None
        return asked if asked.is_secure or is_loopback(asked.host) else None

    def is_same(self, header: str, origin: Origin) -> bool:
        """Whether an Origin header is exactly this origin."""
        return header == str(origin)
