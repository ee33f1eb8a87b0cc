"""The door of the trigger: who may send it a request. No page of another site can make a browser do so."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.app.verbs.problems import Problem
from penstock.web.origins import LOCAL_NAMES

if TYPE_CHECKING:
    from starlette.datastructures import Headers

# What GitHub's webhooks carry.
SIGNATURE = "X-Hub-Signature-256"
DELIVERY = "X-GitHub-Delivery"


def has_token(header: str, token: str) -> bool:
    """Whether this is `Bearer` and the token, in constant time."""
    scheme, _, given = header.partition(" ")
    same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), token.encode())
    return same and scheme.lower() == "bearer"


def has_signature(header: str, body: bytes, token: str) -> bool:
    """Whether this is the HMAC of the body under the token, as GitHub signs webhooks, in constant time."""
    made = f"sha256={hmac.new(token.encode(), body, hashlib.sha256).hexdigest()}"
    return hmac.compare_digest(header.strip().encode("utf-8", "surrogateescape"), made.encode())


class Door:
    """Who may come in. Without a token it is everybody on this machine."""

    def __init__(self, token: str | None, hosts: tuple[str, ...]) -> None:
        self._token = token
        self._hosts = frozenset(hosts)

    def check(self, headers: Headers) -> None:
        hosts = headers.getlist("Host")
        host = hosts[0] if len(hosts) == 1 else ""
        if not self._is_known(host):
            detail = "unknown host name; trigger.hosts allows others"
            raise Problem(403, "unknown_host", detail)
        origin = headers.get("Origin")
        if origin is not None and not is_same_origin(origin, host):
            raise Problem(403, "other_origin", "not from another origin")
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise Problem(403, "other_origin", "not from another origin")
        given = headers.get("Authorization", "")
        # Who signs has shown nothing yet: `check_signature` follows, when the body is there.
        is_shown = SIGNATURE in headers or has_token(given, self._token or "")
        if self._token is not None and not is_shown:
            raise _unknown()

    def check_signature(self, headers: Headers, body: bytes) -> None:
        """Who signs the body needs no other proof that it has the token."""
        signature = headers.get(SIGNATURE)
        if self._token is None or signature is None:
            return
        if not has_signature(signature, body, self._token):
            raise _unknown()

    def _is_known(self, place: str) -> bool:
        try:
            return (urlsplit(f"//{place}").hostname or "") in self._hosts
        except ValueError:
            return False


def _unknown() -> Problem:
    about = {"WWW-Authenticate": "Bearer"}
    return Problem(401, "bad_token", "a bearer token or a signature is needed", headers=about)


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
