"""A source's own addresses, and the other hosts that its requests may go to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated

from penstock.settings.declaration import Reads, Schema
from penstock.settings.document import Entry
from penstock.settings.kinds import Ref, read_names, texts_schema, variable
from penstock.settings.section import read_flag, text_of

_HOST_PATTERN = re.compile(r"\*|(?:\*\.)?(?:[^\s/@*\[\]:]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")


def addresses_of(key: str, params: dict[str, object]) -> tuple[str, ...]:
    """What the configuration names as this source's site: its key, if that is a host, and URLs in params."""
    host = key.partition("/")[0]
    found = []
    if host == "localhost" or host.startswith(("localhost:", "[")) or "." in host:
        # The key has lost its `www.`: the site is reached with and without it.
        found = [f"https://{host}", f"https://www.{host}"]
    return tuple(dict.fromkeys([*found, *urls_in(params)]))


def urls_in(value: object) -> Iterator[str]:
    """Every address that stands in a value of the configuration."""
    if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
        yield value
    elif isinstance(value, str) and value.lower().startswith(("ws://", "wss://")):
        # A websocket begins with a request of HTTP to the same origin.
        yield f"http{value[2:]}"
    elif isinstance(value, dict):
        for inner in value.values():
            yield from urls_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from urls_in(inner)


def read_hosts(entry: Entry, path: str) -> tuple[str, ...]:
    """`fetch.hosts`: hosts, `*.example.com` for all below one, or `*` for any."""
    found: tuple[str, ...] = read_names(entry, path, "hosts", _read_host)
    return found


def _read_host(entry: Entry, path: str) -> str:
    host = text_of(entry, path).strip().lower()
    if not _HOST_PATTERN.fullmatch(host):
        raise entry.error(path, "needs hosts such as cdn.example.com or *.example.com")
    return host


def read_allow_private(entry: Entry, path: str) -> bool | tuple[str, ...]:
    """`allow_private`: false, true, or a list of networks, addresses and hosts."""
    if not isinstance(entry.value, list):
        return read_flag(entry, path)
    return tuple(_read_network(inner, path) for inner in entry.value)


def _read_network(entry: Entry, path: str) -> str:
    text = text_of(entry, path).strip().lower()
    is_host = _HOST_PATTERN.fullmatch(text) and ":" not in text and text != "*"
    if not _is_network(text) and not is_host:
        raise entry.error(path, "needs networks or hosts, such as 10.2.0.0/16 or db.internal")
    return text


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _allow_private_schema(_: Ref) -> Schema:
    return {"anyOf": [{"type": "boolean"}, texts_schema(_), variable()]}


AllowPrivate = Annotated[bool | tuple[str, ...], Reads(read_allow_private, _allow_private_schema)]
