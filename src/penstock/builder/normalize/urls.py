"""Addresses of sites, their domains, and pages of companies on platforms."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from yarl import URL

from penstock.builder.normalize.text import clean
from penstock.http.addresses import MAX_URL, is_too_long
from penstock.http.links import normalised

LONGEST_DOMAIN = 253
MOST_REMEMBERED, LONGEST_REMEMBERED = 4_096, 300
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,20}:(?!\d)", re.IGNORECASE)
# Registries that give out names below a second label.
_SECOND_LABELS = frozenset("ac co com edu gov gob ltd me net ne nom or org plc sch".split())
# Countries whose registries do so.
_LONG_SUFFIXES = frozenset("ar au br cn id il in jp ke kr mx my nz pl sg th tr tw uk za".split())
# Who gives each customer a name of his own: the label before belongs to the domain.
_HOSTED = frozenset(
    "blogspot.com business.site github.io jimdosite.com myshopify.com netlify.app pages.dev square.site "
    "squarespace.com webflow.io weebly.com wixsite.com wordpress.com vercel.app".split()
)
# Sites about companies, and never of one: a company's page there is not its site.
PLATFORMS = {
    "linkedin.com": "linkedin",
    "facebook.com": "facebook",
    "fb.com": "facebook",
    "twitter.com": "twitter",
    "x.com": "twitter",
}
DIRECTORIES = frozenset(
    "bing.com bbb.org crunchbase.com foursquare.com glassdoor.com goo.gl google.com indeed.com instagram.com "
    "mapquest.com opencorporates.com pagesjaunes.fr pinterest.com societe.com tiktok.com tripadvisor.com "
    "wikipedia.org yellowpages.com yelp.com youtube.com zoominfo.com".split()
)


def website(value: Any) -> str | None:
    """The address of a company's own site, in one spelling; None for pages on platforms and in directories.

    Without a scheme it gets http: a site that has moved to https says so itself.
    """
    url = web_url(value)
    domain = None if url is None else domain_of(url)
    return None if domain is None or not is_own_site(domain) else url


def is_own_site(domain: str) -> bool:
    """Whether a domain may belong to one company."""
    return domain not in PLATFORMS and domain not in DIRECTORIES


def web_url(value: Any) -> str | None:
    """An address on the web in one spelling, whoever's it is."""
    # The same few addresses are looked at again and again: hits, links, what pages and lists say.
    if isinstance(value, str) and len(value) <= LONGEST_REMEMBERED:
        return _remembered(value)
    return _web_url(value)


def _web_url(value: Any) -> str | None:
    text = clean(value, MAX_URL)
    if text is None or " " in text or is_too_long(text):
        return None
    if not _SCHEME.match(text):
        if "@" in text or _OTHER_SCHEME.match(text):
            return None
        text = f"http://{text.removeprefix('//')}"
    url = normalised(text)
    return None if url is None or host_of(url) is None else url


_remembered = lru_cache(maxsize=MOST_REMEMBERED)(_web_url)


def host_of(url: str) -> str | None:
    """The name of a URL's host in lower case; None for numbers and for what is no name."""
    return _host(url) if len(url) <= LONGEST_REMEMBERED else _host.__wrapped__(url)


@lru_cache(maxsize=MOST_REMEMBERED)
def _host(url: str) -> str | None:
    try:
        host = (URL(url).raw_host or "").lower().rstrip(".")
    except (ValueError, UnicodeError):
        return None
    return host if is_domain(host) else None


def is_domain(host: str) -> bool:
    """Whether it is a name with a dot whose last label is no number."""
    labels = host.split(".")
    if len(labels) < 2 or len(host) > LONGEST_DOMAIN or labels[-1].isdigit():
        return False
    return all(_LABEL.fullmatch(label) for label in labels)


def domain_of(value: Any) -> str | None:
    """The registered domain of a URL, a host or an e-mail address: `shop.acme.co.uk` is `acme.co.uk`."""
    text = clean(value, MAX_URL)
    if text is None:
        return None
    if "@" in text and "/" not in text:
        text = text.rpartition("@")[2]
    url = web_url(text)
    host = None if url is None else host_of(url)
    return None if host is None else registered(host)


def registered(host: str) -> str:
    """The part of a host that somebody has registered."""
    labels = host.split(".")
    is_long = len(labels) > 2 and labels[-2] in _SECOND_LABELS and labels[-1] in _LONG_SUFFIXES
    is_hosted = ".".join(labels[-2:]) in _HOSTED
    return ".".join(labels[-3 if is_long or is_hosted else -2 :])


def platform_page(value: Any) -> tuple[str, str] | None:
    """The platform and the address of a company's page there; None for links to the platform itself."""
    url = web_url(value)
    domain = None if url is None else domain_of(url)
    if url is None or domain not in PLATFORMS:
        return None
    path = URL(url).path.strip("/")
    first = path.partition("/")[0].lower()
    if not path or first in (
        "share",
        "sharer",
        "sharer.php",
        "intent",
        "login",
        "home",
        "search",
        "hashtag",
        "plugins",
    ):
        return None
    return PLATFORMS[domain], str(URL(url).with_query(None).with_scheme("https"))
