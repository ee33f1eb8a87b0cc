"""Links: which of them lead to pages of the site, in one spelling, and which lead nowhere for ever."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from penstock.connectors.files.globs import Globs
from penstock.http.links import TRACKING

Scope = Literal["host", "prefix", "domain"]

LONGEST = 500
DEEPEST_PATH = 15
MOST_PARAMETERS = 4
# A name that stands so often in one path comes from relative links that pile up.
MOST_REPEATED = 3
_SESSION = re.compile(
    r"(php|asp|j)?sess(ion)?_?id|sid|s_?id|cfid|cftoken|aspsessionid\w*|zenid|oscsid", re.IGNORECASE
)
_IN_PATH = re.compile(r";jsessionid=[^/?#]{0,200}", re.IGNORECASE)
_DATE = re.compile(r"(?<![0-9])([0-9]{4})[-/.]?(0[1-9]|1[0-2])(?:[-/.]?[0-3][0-9])?(?![0-9])")
_CALENDAR = re.compile(r"cal(endar)?|event[s-]|agenda|month|week|day|date|year", re.IGNORECASE)
_NO_PAGE = re.compile(
    r"\.(?:jpe?g|png|gif|webp|avif|svg|ico|css|js|mjs|woff2?|ttf|eot|mp[34]|m4[av]|avi|mov|webm|og[gv]|wav|"
    r"zip|gz|tgz|bz2|xz|7z|rar|exe|dmg|iso|apk|deb|rpm)$",
    re.IGNORECASE,
)
_PORTS = {"http": "80", "https": "443"}


def canonical(url: str) -> str:
    """One spelling of an address: without fragment, usual port, tracking and session parameters.

    The path stays as it is written, unlike that of `ctx.links`: it is the key of a record.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = f":{parts.port}" if parts.port and str(parts.port) != _PORTS.get(parts.scheme) else ""
    host = f"[{host}]" if ":" in host else host
    path = _IN_PATH.sub("", parts.path) or "/"
    query = parts.query
    if query:
        kept = [
            (name, value)
            for name, value in parse_qsl(query[:4000], keep_blank_values=True)
            if not TRACKING.fullmatch(name) and not _SESSION.fullmatch(name)
        ]
        query = urlencode(kept)
    return f"{parts.scheme}://{host}{port}{path}{f'?{query}' if query else ''}"


class Reach(msgspec.Struct, frozen=True):
    """Which links of a site are followed."""

    start: str
    scope: Scope
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def holds(self, url: str) -> bool:
        """Whether a page is meant: on the site, and by the patterns, which are those of paths."""
        if not self._is_on_site(url) or _NO_PAGE.search(urlsplit(url).path):
            return False
        path = urlsplit(url).path.lstrip("/")
        if self.exclude and Globs(self.exclude).decide(path, False):
            return False
        return not self.include or bool(Globs(self.include).decide(path, False))

    def _is_on_site(self, url: str) -> bool:
        here, there = urlsplit(self.start), urlsplit(url)
        own, host = _bare(here.netloc), _bare(there.netloc)
        if self.scope == "domain":
            return host == own or host.endswith(f".{own}")
        if host != own:
            return False
        folder = here.path.rpartition("/")[0] + "/"
        return self.scope == "host" or there.path.startswith(folder)


def _bare(netloc: str) -> str:
    return netloc.lower().removeprefix("www.")


def trap_of(url: str, year: int) -> str:
    """Why a link would lead on for ever, if it looks so: a word for it, else nothing."""
    parts = urlsplit(url)
    names = [name for name in parts.path.split("/") if name]
    if len(url) > LONGEST:
        return "long address"
    if len(names) > DEEPEST_PATH:
        return "deep path"
    if any(names.count(name) > MOST_REPEATED for name in set(names)):
        return "repeated path"
    if len(parse_qsl(parts.query, keep_blank_values=True)) > MOST_PARAMETERS:
        return "facets"
    if _CALENDAR.search(f"{parts.path}?{parts.query}"):
        for found in _DATE.finditer(f"{parts.path}?{parts.query}"):
            if not year - 20 <= int(found[1]) <= year + 1:
                return "calendar"
    return ""
