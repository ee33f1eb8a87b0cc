"""Domains of companies: candidates with their evidence, and which of them is believed. No WHOIS is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from rapidfuzz import fuzz

from penstock.builder.claims import Claim, with_claims
from penstock.builder.company import Company
from penstock.builder.enrich.dns import DnsAnswer
from penstock.builder.enrich.email import is_free
from penstock.builder.enrich.places import Place, is_same_address
from penstock.builder.enrich.serp import Hit
from penstock.builder.normalize import urls
from penstock.builder.normalize.names import name_key, name_words

# What each piece of evidence adds. They add up to at most 1; see docs/builder.md.
POINTS = {
    "website": 0.55,
    "email": 0.4,
    "hit": 0.25,
    "first hit": 0.1,
    "label is the name": 0.3,
    "label is like the name": 0.15,
    "title is the name": 0.2,
    "city in the hit": 0.1,
    "site names the company": 0.35,
    "site has its phone": 0.4,
    "site has its postcode": 0.25,
}
# What speaks against one, however much speaks for it.
AGAINST = {
    "site is parked": -0.8,
    "site does not answer": -0.6,
}
# What speaks against one that no list gives as the company's: a branch has its parent's site.
AGAINST_FOUND = {
    "site names another company": -0.4,
    "site has another address": -0.6,
}
ENOUGH = 0.5
_ADDRESS = ("street", "city", "postcode", "region", "country")
MOST_CANDIDATES = 8
MOST_GUESSES = 3


class Candidate(msgspec.Struct, frozen=True):
    """A domain that may be the company's, and why."""

    domain: str
    score: float
    evidence: tuple[str, ...]
    url: str | None = None


def candidates(
    company: Company,
    hits: Iterable[Hit | Mapping[str, Any]] = (),
    pages: Iterable[Mapping[str, Any]] = (),
    *,
    suffixes: Sequence[str] = (),
) -> list[Candidate]:
    """Domains that may be the company's, the best first: from its website, its e-mail, hits, and its pages.

    With `suffixes`, names that the company could have registered are candidates too; they have no evidence
    but the name, and need the DNS and a page that confirms them.
    """
    found: dict[str, dict[str, str | None]] = {}

    def add(domain: str | None, evidence: str, url: str | None = None) -> None:
        if domain is not None and urls.is_own_site(domain):
            found.setdefault(domain, {}).setdefault(evidence, url)

    add(
        company.get("domain") or urls.domain_of(company.get("website")),
        "website",
        company.get("website"),
    )
    email = company.get("email")
    if email and not is_free(email):
        add(urls.domain_of(email), "email")
    _add_hits(company, hits, add)
    for guess in guesses(company, suffixes):
        add(guess, "label is the name")
    _add_pages(company, pages, found)
    made = [_candidate(company, domain, evidence) for domain, evidence in found.items()]
    return sorted(made, key=lambda each: (-each.score, each.domain))[:MOST_CANDIDATES]


def _add_hits(company: Company, hits: Iterable[Hit | Mapping[str, Any]], add: Any) -> None:
    city = (company.get("city") or "").casefold()
    for number, hit in enumerate(hits):
        if number >= 20:
            return
        hit = hit if isinstance(hit, Hit) else msgspec.convert(hit, Hit)
        domain = urls.domain_of(hit.url)
        home = urls.web_url(hit.url)
        add(domain, "hit", home)
        if number == 0:
            add(domain, "first hit")
        if _names(hit.title, company):
            add(domain, "title is the name")
        if city and city in f"{hit.title} {hit.snippet}".casefold():
            add(domain, "city in the hit")


def _add_pages(
    company: Company, pages: Iterable[Mapping[str, Any]], found: dict[str, dict[str, str | None]]
) -> None:
    for page in pages:
        domain = page.get("domain") or urls.domain_of(page.get("url"))
        if domain not in found:
            continue
        for evidence in page_evidence(company, page.get("facts") or {}):
            found[domain].setdefault(evidence, None)


def page_evidence(company: Company, facts: Mapping[str, Any]) -> list[str]:
    """What a page says for or against being the company's."""
    if facts.get("is_parked"):
        return ["site is parked"]
    if facts.get("is_silent"):
        return ["site does not answer"]
    found = []
    if company.get("phone") and company["phone"] in facts.get("phones", ()):
        found.append("site has its phone")
    if company.get("postcode") and facts.get("postcode") == company["postcode"]:
        found.append("site has its postcode")
    named = [text for text in (facts.get("name"), facts.get("title")) if text]
    if any(_names(text, company) for text in named):
        found.append("site names the company")
    elif facts.get("name"):
        found.append("site names another company")
    if facts.get("street") and company.get("street") and "site has its phone" not in found:
        place = Place(**{part: facts[part] for part in _ADDRESS if part in facts})
        if not is_same_address(company, place):
            found.append("site has another address")
    return found


def _names(text: str, company: Company) -> bool:
    """Whether a text names the company, perhaps among other words; a shorter name is another company's."""
    ours, theirs = name_key(company["name"]), name_key(text)
    if not ours or not theirs:
        return False
    is_as_long = len(ours.split()) == len(theirs.split())
    return (is_as_long and fuzz.token_sort_ratio(ours, theirs) >= 85) or (
        6 <= len(ours) <= len(theirs) and fuzz.partial_ratio(ours, theirs) >= 95
    )


def _candidate(company: Company, domain: str, evidence: dict[str, str | None]) -> Candidate:
    likeness = label_likeness(company["name"], domain)
    names = dict.fromkeys(evidence)
    if likeness == 1.0:
        names["label is the name"] = None
    elif likeness >= 0.7:
        names["label is like the name"] = None
    score = min(1.0, sum(POINTS.get(name, 0.0) for name in names))
    score += sum(AGAINST.get(name, 0.0) for name in names)
    if "website" not in names and "email" not in names:
        score += sum(AGAINST_FOUND.get(name, 0.0) for name in names)
    url = next((url for url in evidence.values() if url is not None), None)
    return Candidate(domain, round(max(0.0, score), 4), tuple(names), url)


def label_likeness(name: str, domain: str) -> float:
    """How far a domain's label is the company's name, from 0 to 1: all words, the first, or alike."""
    label = domain.partition(".")[0].replace("-", "").replace("_", "")
    words = name_words(name)
    if not words or not label:
        return 0.0
    whole = "".join(words)
    if label == whole:
        return 1.0
    starts = {
        "".join(words[:count]) for count in range(1, len(words)) if len("".join(words[:count])) >= 4
    }
    if label in starts:
        return 0.85
    return float(fuzz.ratio(label, whole)) / 100


def guesses(company: Company, suffixes: Sequence[str]) -> list[str]:
    """Names that the company could have registered, of its words, below these suffixes."""
    words = name_words(company["name"])[:6]
    labels = dict.fromkeys(["".join(words), "-".join(words)]) if words else {}
    made = [
        f"{label}.{suffix.lstrip('.')}"
        for suffix in suffixes
        for label in labels
        if len(label) <= 63
    ]
    return [domain for domain in made if urls.is_domain(domain)][:MOST_GUESSES]


def choose(
    found: Sequence[Candidate], dns: Mapping[str, DnsAnswer] | None = None
) -> Candidate | None:
    """The best candidate with enough evidence; one that the DNS does not know is out in any case."""
    known = dns or {}
    for each in found:
        answer = known.get(each.domain)
        if answer is not None and (answer.exists is False or (answer.exists and not answer.values)):
            continue
        if each.score >= ENOUGH:
            return each
    return None


def with_domain(company: Company, chosen: Candidate | None, *, is_checked: bool = True) -> Company:
    """The company with the chosen domain, or without one if none was believed.

    A domain that a list gave and nothing confirmed stays only if nothing was checked.
    """
    if chosen is None:
        if not is_checked or company.get("domain") is None:
            return company
        return {**company, "domain": None, "website": None}
    website = company.get("website")
    if urls.domain_of(website) != chosen.domain:
        website = chosen.url or f"http://{chosen.domain}/"
    made = {**company, "domain": None, "website": None}
    source = f"domain:{chosen.evidence[0]}" if chosen.evidence else "domain"
    return with_claims(
        made,
        [
            Claim.of("domain", chosen.domain, source, chosen.score),
            Claim.of("website", website, source, chosen.score),
        ],
    )
