"""The door: who may send a request. A page of another site can't make a browser send one."""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlsplit

from aiohttp import web

from penstock.web.answers import refusal

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Door:
    """Who may come in."""

    def __init__(self, token: str | None, hosts: tuple[str, ...]) -> None:
        self._token = None if token is None else token.encode()
        self._hosts = frozenset(hosts)

    def check(self, request: web.Request) -> None:
        host = request.headers.get("Host", "")
        if not self._is_known(host):
            raise refusal(web.HTTPForbidden, "unknown host name; trigger.hosts allows others")
        origin = request.headers.get("Origin")
        if origin is not None and not is_same_origin(origin, host):
            raise refusal(web.HTTPForbidden, "not from another origin")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise refusal(web.HTTPForbidden, "not from another origin")
        if not self._is_trusted(request.headers.get("Authorization", "")):
            raise refusal(
                web.HTTPUnauthorized, "a bearer token is needed", {"WWW-Authenticate": "Bearer"}
            )

    def _is_known(self, place: str) -> bool:
        try:
            return (urlsplit(f"//{place}").hostname or "") in self._hosts
        except ValueError:
            return False

    def _is_trusted(self, header: str) -> bool:
        if self._token is None:
            return True
        scheme, _, given = header.partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token)
        return same and scheme.lower() == "bearer"


def is_same_origin(origin: str, host: str) -> bool:
    """Whether a page came from where it posts to: scheme, name and port. Behind a proxy that may be https."""
    try:
        at = urlsplit(origin)
        usual = {"http": 80, "https": 443}[at.scheme]
        to = urlsplit(f"//{host}")
        is_local = at.hostname in LOCAL_NAMES
        if is_local and at.scheme != "http":
            return False
        return (at.hostname, at.port or usual) == (to.hostname, to.port or usual)
    except (KeyError, ValueError):
        return False
