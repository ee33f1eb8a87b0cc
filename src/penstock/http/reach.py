"""Where a source's requests may go, and what they carry there: pure.

A page, a sitemap or a feed can name any address. What the configuration meant for the source's own site
must not follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from penstock.http.addresses import Target, look_at
from penstock.http.failures import AddressRefused

if TYPE_CHECKING:
    from penstock.settings import FetchPolicy

ANY = "*"


@dataclass(frozen=True, slots=True)
class Reach:
    """The hosts of a source: its `own`, by its addresses, and `others` that the configuration allows.

    `others` is None where the configuration does not say. Then steps may fetch from any host, and
    sitemaps may not lead to one.
    """

    own: tuple[str, ...] = ()
    others: tuple[str, ...] | None = None

    def admits(self, host: str) -> bool:
        """Whether any request may go there."""
        return self.others is None or self._is_named(host)

    def may_list(self, url: str, sitemap: str) -> bool:
        """Whether this sitemap may list that page or sitemap; what is no URL is refused when fetched."""
        if url.startswith(sitemap[: sitemap.find("/", 8) + 1] or "-"):
            return True  # most are: nothing has to be parsed
        try:
            host, home = look_at(url).host_key, look_at(sitemap).host_key
        except AddressRefused:
            return True
        return any(_is_within(host, site) for site in (home, *self.own)) or self._is_named(host)

    def _is_named(self, host: str) -> bool:
        return host in self.own or any(matches(host, each) for each in self.others or ())


ANYWHERE = Reach()


def _is_within(host: str, site: str) -> bool:
    """The site itself, with or without `www.`, or a host below it."""
    site = site.removeprefix("www.")
    return host == site or host.endswith(f".{site}")


def matches(host: str, pattern: str) -> bool:
    """Whether a host is meant by a name, by `*.name` for all below it, or by `*`."""
    if pattern == ANY:
        return True
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


@lru_cache(maxsize=1024)
def reach_of(addresses: tuple[str, ...], hosts: tuple[str, ...] | None) -> Reach:
    own = dict.fromkeys(target.host_key for target in _targets(addresses))
    others = None if hosts is None else tuple(_as_requested(host) for host in hosts)
    return Reach(tuple(own), others)


def check_reach(target: Target, policy: FetchPolicy) -> None:
    """Refuse a request to a host that the configuration does not name, where it names any."""
    if policy.hosts is None or reach_of(policy.addresses, policy.hosts).admits(target.host_key):
        return
    problem = f"{target.host_key} is not one of this source's hosts (fetch.hosts allows others)"
    raise AddressRefused(problem, target.text)


def headers_for(target: Target, policy: FetchPolicy) -> list[Mapping[str, str]]:
    """The configured headers that may go to this origin."""
    found: list[Mapping[str, str]] = []
    if policy.headers:
        is_own = target.origin in _origins(policy.addresses)
        found.append(policy.headers if is_own else harmless(policy.headers))
    for origin, headers in policy.headers_for.items():
        if target.origin in _origins((origin,)):
            found.append(headers)
    return found


def merged(*layers: Mapping[str, str]) -> dict[str, str]:
    """Headers in one: a later one replaces an earlier of the same name in any case."""
    headers: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.items():
            same = next((known for known in headers if known.lower() == name.lower()), name)
            headers.pop(same, None)
            headers[name] = value
    return headers


# Anything else may be a credential under a name of its own.
HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})


def harmless(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that any host may see."""
    return {name: value for name, value in headers.items() if name.lower() in HARMLESS}


@lru_cache(maxsize=1024)
def _origins(addresses: tuple[str, ...]) -> frozenset[str]:
    return frozenset(target.origin for target in _targets(addresses))


def _targets(addresses: tuple[str, ...]) -> list[Target]:
    found = []
    for address in addresses:
        try:
            found.append(look_at(_origin_part(address)))
        except AddressRefused:
            continue  # such as a template whose host is filled in by the step
    return found


def _origin_part(address: str) -> str:
    scheme, _, rest = address.partition("://")
    for end in "/?#\\":
        rest = rest.partition(end)[0]
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _as_requested(host: str) -> str:
    """The host as requests spell it; its letters may be those of another script."""
    star, bare = ("*.", host[2:]) if host.startswith("*.") else ("", host)
    try:
        return star + look_at(f"https://{bare}").host_key
    except AddressRefused:
        return host
