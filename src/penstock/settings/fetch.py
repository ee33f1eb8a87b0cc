"""`fetch:` of a source: what its requests may do, where they may go, and what they carry there."""

from dataclasses import dataclass, field
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from penstock.settings.addresses import AllowPrivate, read_hosts
from penstock.settings.declaration import Keys, Reads, Usual, about, between, names_of, no_less
from penstock.settings.document import Entry
from penstock.settings.headers import Headers, HeadersFor, HeaderValues
from penstock.settings.kinds import Duration, Size, text_schema, texts_schema
from penstock.settings.secrets import MASK
from penstock.settings.section import read_text
from penstock.version import __version__


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """What a source's requests may do, where they may go, and what they carry there.

    `headers` are for the origins of the source's own `addresses`; `headers_for` are for others. `hosts` are
    the hosts that it may reach beside its own; None where the configuration does not say.
    """

    allow_private: bool | tuple[str, ...] = False
    robots: bool = True
    user_agent: str = field(default=f"penstock/{__version__}", repr=False)
    timeout_s: float = 20.0
    max_bytes: int = 16_000_000
    max_redirects: int = 5
    missing: Literal["fail", "skip"] = "fail"
    headers: dict[str, str] = field(default_factory=Headers)
    headers_for: dict[str, dict[str, str]] = field(default_factory=dict)
    hosts: tuple[str, ...] | None = None
    addresses: tuple[str, ...] = field(default=(), repr=False)
    connections: int = 4
    rate_per_s: float | None = None
    has_breaker: bool = True
    proxy: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", Headers(self.headers))
        bound = {origin: Headers(headers) for origin, headers in self.headers_for.items()}
        object.__setattr__(self, "headers_for", bound)


USUAL = FetchPolicy()


def _read_proxy(entry: Entry, path: str) -> str:
    """A URL; no error repeats it: it may hold a password."""
    text = read_text(entry, path)
    try:
        url = urlsplit(text)
        is_good = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_good = False
    if not is_good or url.path not in ("", "/") or url.query or url.fragment:
        raise entry.error(path, "must be the URL of a proxy: http://HOST:PORT")
    return text


class FetchKeys(Keys, frozen=True):
    """What a source's requests may do, where they may go, and what they carry there."""

    allow_private: Annotated[
        AllowPrivate,
        about(
            "private addresses that may be reached: `true` for loopback and private networks, or "
            "a list of networks, addresses and hosts: `[10.2.0.0/16, intranet.example]`; see "
            "[below](#where-requests-go-and-what-they-carry)"
        ),
    ] = USUAL.allow_private
    robots: Annotated[bool, about("obey robots.txt")] = USUAL.robots
    user_agent: Annotated[str, about("`User-Agent` of requests"), Usual("`penstock/VERSION`")] = (
        USUAL.user_agent
    )
    timeout: Annotated[Duration, no_less(0.001), about("timeout of one request in total")] = (
        USUAL.timeout_s
    )
    max_bytes: Annotated[Size, about("largest response body, decoded")] = USUAL.max_bytes
    max_redirects: Annotated[int, between(0, 50), about("redirects to follow")] = (
        USUAL.max_redirects
    )
    missing: Annotated[
        Literal["fail", "skip"],
        about(
            "what to do with missing pages (404, 410): `fail` or `skip`; a missing sitemap or "
            "feed always fails"
        ),
    ] = USUAL.missing
    headers: Annotated[
        HeaderValues,
        about(
            "headers for the source's own site: the origins (scheme, host and port) of its key "
            "and of the URLs in its `params`; see [below](#where-requests-go-and-what-they-carry)"
        ),
    ] = msgspec.field(default_factory=dict)
    headers_for: Annotated[
        HeadersFor,
        about(
            'headers for other origins: `{"https://api.example.com": {Authorization: "Bearer ${TOKEN}"}}`'
        ),
    ] = msgspec.field(default_factory=dict)
    hosts: Annotated[
        tuple[str, ...] | None,
        Reads(read_hosts, texts_schema),
        about(
            "hosts that the source may reach besides its own: `[cdn.example.com, "
            '"*.example.org"]`; `["*"]` for any'
        ),
        Usual("any, but sitemaps stay on their site"),
    ] = USUAL.hosts

    proxy: Annotated[
        str,
        Reads(_read_proxy, text_schema),
        about(
            "proxy for the source's requests: `http://proxy.example:3128`; put credentials into a "
            'variable: `"${PROXY_URL}"`. Addresses are checked, and limits count, as without it'
        ),
        Usual("none"),
    ] = USUAL.proxy

    def __repr__(self) -> str:
        return f"FetchKeys({MASK})"


FETCH_KEYS = names_of(FetchKeys)
