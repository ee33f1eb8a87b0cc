"""Why a fetch came to nothing, in words that never carry a credential."""

from __future__ import annotations

import re
from typing import Literal

from penstock.gates.project_terms import outside
from penstock.settings.secrets import SECRET_NAME

Kind = Literal["transient", "permanent", "data", "auth", "budget"]

MAX_SHOWN_URL = 300
_SECRET_VALUE = re.compile(r"[A-Za-z0-9+/=_.~%-]{20,}")
_CONTROL = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")


class FetchError(Exception):
    """A fetch that brought nothing. `is_permanent`: the same request can't succeed later."""

    def __init__(
        self,
        message: str,
        url: str = "",
        status: int | None = None,
        is_permanent: bool = False,
        kind: Kind | None = None,
    ) -> None:
        self.message = message
        self.url = safe_url(url)
        self.status = status
        self.is_permanent = is_permanent
        # How much of an answer had come in when it was given up.
        self.received = 0
        self.kind: Kind = kind or ("permanent" if is_permanent else "transient")
        super().__init__(f"{message}: {self.url}" if self.url else message)


class ConnectionDropped(FetchError):
    """The connection ended before any of the answer came; a request that changes nothing may be repeated."""


class FetchRefused(FetchError):
    """A fetch that was never made, and would not be made later either."""

    def __init__(
        self,
        message: str,
        url: str = "",
        status: int | None = None,
        is_permanent: bool = True,
        kind: Kind | None = None,
    ) -> None:
        super().__init__(message, url, status, is_permanent, kind)


class Disallowed(FetchRefused):
    """The site's robots.txt asks us not to fetch this."""


class RobotsUnreachable(FetchError):
    """Nobody can say what robots.txt asks, so nothing is fetched; a later try may learn more."""


class AddressRefused(FetchRefused):
    """The URL leads somewhere this source may not go."""


class BudgetSpent(FetchRefused):
    """A budget has no room for this request; what needs it is set aside until there is some again."""

    def __init__(
        self,
        message: str,
        url: str = "",
        status: int | None = None,
        is_permanent: bool = True,
        kind: Kind | None = "budget",
    ) -> None:
        super().__init__(message, url, status, is_permanent, kind)


class HostClosed(FetchError):
    """The host asked for a pause; `delay_s` from now it may be asked again."""

    _words = "{host} is closed for {delay_s:.0f} s"

    def __init__(self, host: str, delay_s: float, url: str = "", status: int | None = None) -> None:
        super().__init__(self._words.format(host=host, delay_s=delay_s), url, status)
        self.host = host
        self.delay_s = delay_s


class HostBroken(HostClosed):
    """The host fails again and again, so its breaker lets nothing pass; nobody was asked."""

    _words = "{host} keeps failing; its breaker is open for {delay_s:.0f} s"


class HostOutside(HostClosed):
    """It is not one of the hours in which the host may be asked; nobody was."""

    _words = outside("{host}")


class Paced(HostClosed):
    """The source's own rate has no room soon; nobody else is concerned."""

    _words = "the rate allows no request to {host} for {delay_s:.0f} s"


def safe_url(url: str) -> str:
    """The URL as it may be shown: no user, no fragment, no query value that looks like a secret."""
    text = _CONTROL.sub("", url[: 4 * MAX_SHOWN_URL]).partition("#")[0]
    scheme, separator, rest = text.partition("://")
    if separator:
        text = f"{scheme}://{_without_user(rest)}"
    address, question, query = text.partition("?")
    if question:
        text = f"{address}?{'&'.join(map(_masked, query.split('&')))}"
    return text if len(text) <= MAX_SHOWN_URL else text[:MAX_SHOWN_URL] + "…"


def _without_user(rest: str) -> str:
    end = next((i for i, letter in enumerate(rest) if letter in "/?\\"), len(rest))
    host = rest[:end].rpartition("@")[2]
    port = "" if host.endswith("]") else host.rpartition(":")[2]
    if ":" in host and port and not port.isdecimal():
        # `user:pa/ss@host`: the slash ended the authority inside the password.
        return "***"
    return host + rest[end:]


def _masked(pair: str) -> str:
    name, equals, value = pair.partition("=")
    if not equals:
        return "***" if _SECRET_VALUE.fullmatch(pair) else pair
    is_secret = SECRET_NAME.search(name) or _SECRET_VALUE.fullmatch(value)
    return f"{name}=***" if is_secret and value else pair
