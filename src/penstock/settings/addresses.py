"""A source's own addresses, and the other hosts that its requests may go to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from penstock.settings.document import join
from penstock.settings.section import Section, describe, text_of

_HOST_PATTERN = re.compile(r"\*|(?:\*\.)?(?:[^\s/@*\[\]:]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")


def addresses_of(key: str, params: dict[str, object]) -> tuple[str, ...]:
    """What the configuration names as this source's site: its key, if that is a host, and URLs in params."""
    host = key.partition("/")[0]
    found = []
    if host == "localhost" or host.startswith(("localhost:", "[")) or "." in host:
        # The key has lost its `www.`: the site is reached with and without it.
        found = [f"https://{host}", f"https://www.{host}"]
    return tuple(dict.fromkeys([*found, *_urls(params)]))


def _urls(value: object) -> Iterator[str]:
    if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _urls(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _urls(inner)


def read_hosts(section: Section) -> tuple[str, ...] | None:
    """`fetch.hosts`: hosts, `*.example.com` for all below one, or `*` for any."""
    entry = section.get("hosts")
    if entry is None:
        return None
    if not isinstance(entry.value, list):
        raise section.error("hosts", f"must be a list of hosts, not {describe(entry)}")
    path, found = join(section.path, "hosts"), []
    for inner in entry.value:
        host = text_of(inner, path).strip().lower()
        if not _HOST_PATTERN.fullmatch(host):
            raise inner.error(path, "needs hosts such as cdn.example.com or *.example.com")
        found.append(host)
    return tuple(found)


def read_allow_private(section: Section) -> bool | tuple[str, ...]:
    """`allow_private`: false, true, or a list of networks, addresses and hosts."""
    entry = section.get("allow_private")
    if entry is None or not isinstance(entry.value, list):
        return section.flag("allow_private", default=False)
    path, found = join(section.path, "allow_private"), []
    for inner in entry.value:
        text = text_of(inner, path).strip().lower()
        is_host = _HOST_PATTERN.fullmatch(text) and ":" not in text and text != "*"
        if not _is_network(text) and not is_host:
            raise inner.error(path, "needs networks or hosts, such as 10.2.0.0/16 or db.internal")
        found.append(text)
    return tuple(found)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
