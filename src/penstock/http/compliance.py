"""Reading what a site says about being read: its robots.txt, and the page with its terms.

In:    addresses of a source, its fetch policy, a network.
Out:   what was read, with a hash, and for robots.txt whether it allows these addresses.
Never: a page of the source itself. This may be asked of a source of which nothing else may be fetched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Literal

from penstock.http import encoding
from penstock.http.addresses import look_at
from penstock.http.failures import FetchError, safe_url
from penstock.http.network import Network, RawResponse, Request
from penstock.http.redirects import REDIRECTS, Hop, follow
from penstock.http.robots import MAX_BYTES, MAX_REDIRECTS
from penstock.http.robots_rules import rules_for
from penstock.settings.fetch import FetchPolicy

MAX_TERMS_BYTES = 2_000_000
# What a page says that nobody reads, or that is another at each look.
_UNSEEN = frozenset({"script", "style", "noscript", "template", "head", "svg"})


@dataclass(frozen=True, slots=True)
class RobotsSeen:
    """What one origin's robots.txt says of the addresses that were asked about."""

    url: str
    verdict: Literal["allowed", "disallowed", "unreachable"]
    text: str = ""
    detail: str = ""

    @property
    def hash(self) -> str:
        return hash_of_text(self.text) if self.verdict != "unreachable" else ""


@dataclass(frozen=True, slots=True)
class TermsSeen:
    """The words of a page; `trouble` says why there are none."""

    url: str
    text: str = ""
    trouble: str = ""

    @property
    def hash(self) -> str:
        return hash_of_text(self.text) if not self.trouble else ""


def hash_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def read_robots(
    addresses: Sequence[str], policy: FetchPolicy, network: Network
) -> list[RobotsSeen]:
    """One answer for each origin of these addresses, in their order; every address has to be allowed."""
    origins: dict[str, list[str]] = {}
    for address in addresses:
        target = look_at(address)
        origins.setdefault(target.origin, []).append(target.text)
    return [await _of_origin(each, urls, policy, network) for each, urls in origins.items()]


async def _of_origin(
    origin: str, addresses: Sequence[str], policy: FetchPolicy, network: Network
) -> RobotsSeen:
    url = f"{origin}/robots.txt"
    try:
        raw = await _read(url, policy, network, MAX_BYTES)
    except FetchError as error:
        return RobotsSeen(url, "unreachable", detail=error.message)
    if raw.status in REDIRECTS or (400 <= raw.status < 500 and raw.status != 429):
        return RobotsSeen(url, "allowed", detail=f"there is none (status {raw.status})")
    if not 200 <= raw.status < 300:
        return RobotsSeen(url, "unreachable", detail=f"status {raw.status}")
    text = raw.body.decode("utf-8", "replace")
    rules = rules_for(raw.body, policy.user_agent)
    for address in addresses:
        if rules.too_many or not rules.can_match(address):
            return RobotsSeen(url, "disallowed", text, "it has more rules than can be followed")
        if not rules.allows(address):
            return RobotsSeen(url, "disallowed", text, f"it forbids {safe_url(address)}")
    return RobotsSeen(url, "allowed", text)


async def read_terms(url: str, policy: FetchPolicy, network: Network) -> TermsSeen:
    """The words of the page at this address."""
    shown = safe_url(url)
    try:
        raw = await _read(url, policy, network, MAX_TERMS_BYTES)
    except FetchError as error:
        return TermsSeen(shown, trouble=error.message)
    if not 200 <= raw.status < 300:
        return TermsSeen(shown, trouble=f"status {raw.status}")
    text = raw.body.decode("utf-8", "replace")
    if "html" in raw.headers.get("content-type", "html").lower():
        text = words_of(text)
    return TermsSeen(shown, " ".join(text.split()))


async def _read(url: str, policy: FetchPolicy, network: Network, most: int) -> RawResponse:
    headers = {
        "User-Agent": policy.user_agent,
        "Accept-Encoding": encoding.ACCEPTED,
        "Accept": "*/*",
    }
    hop = Hop("GET", look_at(url), headers)
    for _ in range(MAX_REDIRECTS):
        raw = await network.send(_request(hop, policy, most))
        if raw.status not in REDIRECTS:
            return raw
        hop = follow(hop, raw.status, raw.headers.get("location", ""))
    return await network.send(_request(hop, policy, most))


def _request(hop: Hop, policy: FetchPolicy, most: int) -> Request:
    return Request(
        hop.method,
        hop.target.text,
        hop.headers,
        timeout_s=policy.timeout_s,
        max_bytes=most,
        allow_private=policy.allow_private,
        is_prefix_enough=True,
        proxy=policy.proxy,
    )


def words_of(html: str) -> str:
    """What a reader sees of a page, one space between words."""
    parser = _Words()
    parser.feed(html)
    parser.close()
    return " ".join(parser.words)


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self._unseen = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._unseen and tag in _UNSEEN:
            self._unseen = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._unseen:
            self._unseen = ""

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.words += data.split()
