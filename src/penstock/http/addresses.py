"""Which addresses and URLs may be asked for: pure rules, no lookups."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache

from yarl import URL

from penstock.http.failures import AddressRefused

MAX_URL = 8192
# No host name is longer, as it is written or as it is encoded; a long one takes long to encode.
MAX_AUTHORITY = 512
DEFAULT_PORTS = {"http": 80, "https": 443}

_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
# Beside what `ipaddress` knows to be private: its lists differ between Python versions, and some
# of these are globally routed on paper while a cloud answers them inside with its metadata or services:
# Azure 168.63.129.16, IBM 161.26/16 and 166.8/14, Google 199.36.153.4/30 and .8/30 and their IPv6 twins.
_REFUSED_V4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "161.26.0.0/16",
        "166.8.0.0/14",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "199.36.153.4/30",
        "199.36.153.8/30",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
# Those that carry an IPv4 address inside (NAT64, 6to4, Teredo) reach wherever that one does.
_REFUSED_V6 = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "2600:2d00:2:1000::/64",
        "2600:2d00:2:2000::/64",
        "3fff::/20",
    )
)
# The middle of an address that tunnels to the IPv4 address in its last four bytes; one bit of it is free.
_ISATAP = 0x00005EFE
_HOST_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_AUTHORITY = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:)?//([^/?#\\]*)")


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that was looked at once; everything later goes by this reading of it.

    `host_key` is the host as it is closed and counted: with its port, unless that is the usual one.
    """

    url: URL
    text: str
    host: str
    host_key: str
    origin: str
    is_literal: bool


def host_key(url: str) -> str:
    """The name under which this URL's host is closed, counted and paced."""
    return look_at(url).host_key


def is_too_long(url: str) -> bool:
    """Whether no such URL is ever fetched, so that nobody needs to read it."""
    found = _AUTHORITY.match(url) if len(url) <= MAX_URL else None
    return len(url) > MAX_URL or (found is not None and len(found[1]) > MAX_AUTHORITY)


def is_refused(address: str) -> bool:
    """Whether an IP address is anything but an ordinary public one."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    if not ip.is_global or ip.is_multicast or ip.is_unspecified or ip.is_reserved:
        return True
    if isinstance(ip, ipaddress.IPv4Address):
        return any(ip in network for network in _REFUSED_V4)
    if int(ip) >> 32 & 0xFDFFFFFF == _ISATAP:
        return True
    return ip not in _PUBLIC_V6 or any(ip in network for network in _REFUSED_V6)


@lru_cache(maxsize=1024)
def look_at(url: str) -> Target:
    """Read a URL, or refuse it: http and https only, no user, no host that only looks like a name.

    Says nothing about where a name resolves to; that is checked when it has been resolved.
    """
    try:
        parsed = None if is_too_long(url) else URL(url)
        authority = parsed and (parsed.scheme, parsed.raw_host or "", parsed.port or 0)
    except (ValueError, TypeError, UnicodeError):
        parsed = authority = None
    if not parsed or not authority:
        raise AddressRefused("not a URL that can be fetched", url)
    if parsed.scheme not in DEFAULT_PORTS:
        raise AddressRefused("only http and https are fetched", url)
    if "@" in parsed.raw_authority:
        raise AddressRefused("a user in the URL is not accepted; use fetch.headers", url)
    named = _name_host(*authority)
    if named is None:
        raise AddressRefused("the host is neither a name nor an address in its usual form", url)
    bare = parsed.with_fragment(None) if parsed.raw_fragment else parsed
    return Target(bare, str(bare), *named)


@lru_cache(maxsize=1024)
def _name_host(scheme: str, raw_host: str, port: int) -> tuple[str, str, str, bool] | None:
    """(host, host_key, origin, is_literal), or None for a host that can't be taken at its word."""
    host = raw_host.lower()
    is_literal = _is_address(host)
    if not port or not (is_literal or _is_name(host)):
        return None
    key = f"[{host}]" if ":" in host else host
    if port != DEFAULT_PORTS[scheme]:
        key = f"{key}:{port}"
    return host, key, f"{scheme}://{key}", is_literal


def _is_address(host: str) -> bool:
    if ":" not in host and not host[-1:].isdigit():
        return False
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return ip.version == 4 or "%" not in host


def _is_name(host: str) -> bool:
    """A host name by its letters, whose last label no resolver would read as part of a number."""
    if not _HOST_NAME.fullmatch(host) or len(host) > 254:
        return False
    return not _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2])
