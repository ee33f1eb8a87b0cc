"""Cookies of a session: which go to which request. Pure, and stricter than a browser.

A cookie goes back to the very host and port that set it, and over https if it came over https. Its Domain is
heeded only where that is one of the source's own hosts. It is never stored outside of the process's memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from penstock.http.addresses import Target, look_at
from penstock.http.failures import AddressRefused
from penstock.http.redirects import Hop

MOST_COOKIES = 100
LONGEST_LINE = 4096
COOKIE = "Cookie"


class Cookie(msgspec.Struct, frozen=True):
    """`domain` is empty for a cookie of one host alone."""

    name: str
    value: str
    host: str
    path: str = "/"
    domain: str = ""
    is_https: bool = False
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"Cookie({self.name}, {self.host})"

    @property
    def place(self) -> tuple[str, str, str]:
        return self.name, self.domain or self.host, self.path

    def goes_to(self, target: Target, now: float) -> bool:
        if self.expires_at is not None and self.expires_at <= now:
            return False
        if self.is_https and target.url.scheme != "https":
            return False
        host = target.host_key
        is_meant = host == self.host or bool(self.domain and _is_within(host, self.domain))
        return is_meant and _is_below(target.url.raw_path, self.path)


class Jar:
    """The cookies of one session, while a fetch goes through its redirects. `own` are the source's hosts."""

    def __init__(self, cookies: Iterable[Cookie], own: Sequence[str], now: float) -> None:
        self._cookies = {each.place: each for each in cookies}
        self._own = own
        self._now = now
        self.learned: list[Cookie] = []

    def on(self, hop: Hop) -> Hop:
        """The request with the cookies that go to it; those that the step itself names win."""
        found = {
            each.name: each.value
            for each in sorted(self._cookies.values(), key=lambda each: len(each.path))
            if each.goes_to(hop.target, self._now)
        }
        headers = {name: value for name, value in hop.headers.items() if name.lower() != "cookie"}
        named = next((v for k, v in hop.headers.items() if k.lower() == "cookie"), "")
        pairs = [f"{name}={value}" for name, value in found.items()] + ([named] if named else [])
        return replace(hop, headers={**headers, COOKIE: "; ".join(pairs)} if pairs else headers)

    def learn(self, target: Target, lines: Sequence[str]) -> None:
        for line in lines[:MOST_COOKIES]:
            cookie = parse_cookie(line, target, self._own, self._now)
            if cookie is not None and len(self._cookies) < MOST_COOKIES:
                self._cookies[cookie.place] = cookie
                self.learned.append(cookie)


def parse_cookie(line: str, target: Target, own: Sequence[str], now: float) -> Cookie | None:
    """One Set-Cookie header; None for what is none."""
    pair, *attributes = line[:LONGEST_LINE].split(";")
    name, sign, value = pair.partition("=")
    name, value = name.strip(), value.strip()
    if len(line) > LONGEST_LINE or not sign or not name or not _is_plain(name + value):
        return None
    about = dict(_attribute(each) for each in attributes)
    path = about.get("path", "")
    return Cookie(
        name,
        value,
        target.host_key,
        path if path.startswith("/") else "/",
        _domain(about.get("domain", ""), target.host_key, own),
        target.url.scheme == "https" or "secure" in about,
        _expiry(about, now),
    )


def cookie_header(cookies: Any) -> str:
    """Names and values as one header; raises ValueError for what can't be a cookie."""
    pairs = []
    for name, value in dict(cookies).items():
        text = f"{name}={value}"
        if not isinstance(name, str) or not name or not _is_plain(text) or "=" in name:
            raise ValueError(
                f"cookies take names and values without spaces and ;, not {name!r:.60}"
            )
        pairs.append(text)
    return "; ".join(pairs)


def names_for(cookies: Iterable[Cookie], url: str, now: float) -> dict[str, str]:
    try:
        target = look_at(url)
    except AddressRefused:
        return {}
    return {each.name: each.value for each in cookies if each.goes_to(target, now)}


def _attribute(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip().lower(), value.strip()


def _domain(given: str, host: str, own: Sequence[str]) -> str:
    domain = given.lower().lstrip(".")
    if not domain or not _is_within(host, domain):
        return ""
    return domain if any(domain in (each, each.removeprefix("www.")) for each in own) else ""


def _expiry(about: dict[str, str], now: float) -> float | None:
    age = about.get("max-age", "")
    if age.lstrip("-").isdecimal() and len(age) < 12:
        return now + int(age)
    try:
        return parsedate_to_datetime(about["expires"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError, IndexError):
        return None


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and not set(text) & set(' ;,"\\')


def _is_within(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def _is_below(path: str, parent: str) -> bool:
    return path == parent or path.startswith(parent if parent.endswith("/") else f"{parent}/")
