"""The network: loopback, names of the hosts that sources name, and variables that ask for a proxy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from penstock.app.doctor.findings import Area
from penstock.app.views.doctor import CheckupFindingView
from penstock.http.checkup import listens_on_loopback, resolve_all
from penstock.settings import Settings

AREA = Area("network")
MOST_HOSTS = 10
LONGEST_S = 5.0
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")
_DEEPEST = 4


def look(settings: Settings | None, is_offline: bool) -> Iterator[CheckupFindingView]:
    yield from _loopback()
    yield from _proxies()
    if settings is None:
        return
    hosts = hosts_of(settings)
    if is_offline or not hosts:
        why = "--offline" if is_offline else "no source names a host"
        yield AREA.skipped(f"no name was looked up ({why})")
        return
    yield from _names(hosts)


def hosts_of(settings: Settings) -> list[str]:
    """The hosts that sources are called after or have in their settings, each once."""
    found: dict[str, None] = {}
    for key, source in settings.sources.items():
        if _HOST.fullmatch(key):
            found[key] = None
        for text in _texts([source.params, source.options]):
            if text.startswith(("http://", "https://")):
                found |= dict.fromkeys(filter(None, [_host_in(text)]))
    return list(found)


def _host_in(text: str) -> str:
    try:
        return urlsplit(text).hostname or ""
    except ValueError:
        return ""


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _DEEPEST and isinstance(value, (dict, list, tuple)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner, depth + 1)


def _loopback() -> Iterator[CheckupFindingView]:
    error = listens_on_loopback()
    if error:
        yield AREA.problem(
            f"this machine can't be reached on 127.0.0.1 ({error}): `web` and `trigger` listen there",
            "bring the loopback interface up: ip link set lo up",
        )
    else:
        yield AREA.ok("loopback answers")


def _proxies() -> Iterator[CheckupFindingView]:
    found = [name for name in PROXIES if os.environ.get(name) or os.environ.get(name.lower())]
    if found:
        yield AREA.warning(
            f"{', '.join(found)} is set, and Penstock does not use it",
            "where a proxy is needed, name it in penstock.yaml: fetch: {proxy: http://HOST:PORT}",
        )


def _names(hosts: list[str]) -> Iterator[CheckupFindingView]:
    looked = hosts[:MOST_HOSTS]
    answers = resolve_all(looked, LONGEST_S)
    failed = {host: error for host, error in answers.items() if error}
    for host, error in failed.items():
        yield AREA.warning(
            f"{host} has no address here ({error})",
            "check its spelling in penstock.yaml, and the resolver: /etc/resolv.conf",
        )
    rest = f" of {len(hosts)}" if len(hosts) > len(looked) else ""
    if len(failed) < len(looked):
        yield AREA.ok(f"names are resolved ({len(looked) - len(failed)}{rest})")
