"""Links of a page, normalised, so that one address has one spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from yarl import URL

from penstock.http.addresses import is_too_long

if TYPE_CHECKING:
    from penstock.http.response import Response

MOST_LINKS = 10_000
_LONG = 65_536
_USUAL_PORTS = {"http": 80, "https": 443}
# What tells a site where a visitor came from, and not which page is meant.
TRACKING = re.compile(
    r"utm_\w{1,40}|gclid|fbclid|msclkid|mc_[ce]id|yclid|_ga|_gl|igshid", re.IGNORECASE
)


def links_of(response: Response) -> list[str]:
    """The http and https links of an HTML page, normalised, each once, in their order."""
    from selectolax.lexbor import LexborHTMLParser

    began = perf_counter()
    tree = LexborHTMLParser(response.text)
    base = response.url
    named = tree.css_first("base[href]")
    if named is not None:
        base = _joined(base, named.attributes.get("href") or "") or base
    found: dict[str, None] = {}
    for node in tree.css("a[href], area[href]"):
        if len(found) >= MOST_LINKS:
            break
        url = normalised(node.attributes.get("href") or "", base)
        if url is not None:
            found[url] = None
    if len(response.body) > _LONG:
        from penstock.http.pace import owe

        owe(perf_counter() - began)
    return list(found)


def normalised(link: str, base: str = "") -> str | None:
    """The address that a link leads to, in one spelling; None for what is no address of a page.

    Without a fragment, the usual port and parameters of tracking; the host in lower case.
    """
    joined = _joined(base, link)
    if joined is None:
        return None
    try:
        url = URL(joined)
        if url.scheme not in _USUAL_PORTS or not url.host:
            return None
        url = url.with_fragment(None).with_user(None)
        if url.explicit_port == _USUAL_PORTS[url.scheme]:
            url = url.with_port(None)
        kept = [(name, value) for name, value in url.query.items() if not TRACKING.fullmatch(name)]
        if len(kept) != len(url.query):
            url = url.with_query(kept)
    except (ValueError, TypeError):
        return None
    return str(url if url.raw_path != "/" else url.with_path("/").with_query(url.query or None))


def under(urls: Sequence[str], paths: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    """Those whose path begins with one of these, if there are any, and with none of the others."""
    for url in urls:
        path = URL(url, encoded=True).raw_path
        if (not paths or path.startswith(tuple(paths))) and not (
            other and path.startswith(tuple(other))
        ):
            yield url


def _joined(base: str, link: str) -> str | None:
    text = link.strip()
    if not text or is_too_long(text):
        return None
    try:
        return str(URL(base).join(URL(text))) if base else text
    except (ValueError, UnicodeError):
        return None
