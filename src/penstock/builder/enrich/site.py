"""Facts of a company's pages: JSON-LD, microdata, OpenGraph, and what a contact page says in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rapidfuzz import fuzz
from selectolax.lexbor import LexborHTMLParser

from penstock.builder.claims import Claim, with_claims
from penstock.builder.company import Company
from penstock.builder.enrich.address import parsed_address
from penstock.builder.enrich.email import ROLES, is_free, is_sample
from penstock.builder.enrich.places import Place, is_same_address
from penstock.builder.normalize import countries, emails, names, phones, places, urls
from penstock.builder.normalize.names import name_key
from penstock.builder.normalize.standardize import day
from penstock.builder.normalize.text import clean
from penstock.connectors.formats.html import (
    json_ld,
    links_of,
    main_text,
    microdata,
    open_graph,
    parsed_tree,
)

MOST_BYTES = 2_000_000
MOST_PHONES = MOST_EMAILS = 10
MOST_LINES = 2_000
LONGEST_LINE = 300
MOST_THINGS = 200
# From which likeness on two names are one with a typing error.
SPELLING = 88
_ADDRESS = ("street", "city", "postcode", "region", "country")
ORGANIZATIONS = frozenset(
    "organization corporation localbusiness store restaurant hotel professionalservice automotivebusiness "
    "homeandconstructionbusiness medicalbusiness legalservice financialservice foodestablishment "
    "lodgingbusiness plumber electrician dentist bakery ngo educationalorganization florist".split()
)
_EMAIL = re.compile(
    r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}"
)
_HIDDEN_AT = re.compile(r" ?[\[({] ?at ?[\])}] ?", re.IGNORECASE)
_HIDDEN_DOT = re.compile(r" ?[\[({] ?dot ?[\])}] ?", re.IGNORECASE)
_PHONE = re.compile(r"(?<![\w.])\+?\(?\d[\d ()./-]{6,22}\d(?![\w])")
_CONTACT = re.compile(
    r"contact|kontakt|about|impressum|imprint|legal|mentions|find-us|visit|location", re.IGNORECASE
)
_PARKED = re.compile(
    r"domain (?:is|may be) for sale|buy this domain|domain (?:has been )?parked|parked (?:free|domain)|"
    r"this domain has expired|domaine est à vendre|diese domain steht zum verkauf",
    re.IGNORECASE,
)
Facts = dict[str, Any]


def page_facts(html: str | bytes, url: str, country: str | None = None) -> Facts:
    """What a page says about the company whose site it is: plain data, only what was found.

    `country` helps to read telephone numbers without their country's code.
    """
    text = html.decode("utf-8", "replace") if isinstance(html, bytes) else html
    tree, _ = parsed_tree(text[:MOST_BYTES])
    facts: Facts = {"url": url}
    title = tree.css_first("title")
    if title is not None and (line := clean(title.text(), 300)):
        facts["title"] = line
    facts.update(_structured(tree, country))
    graph = open_graph(tree)
    if graph.get("site_name"):
        facts["site_name"] = clean(graph["site_name"], 200)
    _read_links(tree, url, facts, country)
    _read_text(tree, facts, country)
    return facts


def _structured(tree: LexborHTMLParser, country: str | None) -> Facts:
    for source, thing in organizations(tree):
        found = organization_facts(thing, country)
        if found.get("name"):
            return {**found, "described_by": source}
    return {}


def organizations(tree: LexborHTMLParser) -> Iterator[tuple[str, dict[str, Any]]]:
    """The organisations that a page describes, JSON-LD first."""
    for source, found in (("json-ld", json_ld(tree)), ("microdata", microdata(tree))):
        for thing in _things(found):
            if kinds_of(thing) & ORGANIZATIONS:
                yield source, thing


def _things(found: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Each object, and those of its graph and its list, without recursion."""
    waiting = list(found)[::-1]
    for _ in range(MOST_THINGS):
        if not waiting:
            return
        thing = waiting.pop()
        if isinstance(thing, list):
            waiting += thing[:MOST_THINGS][::-1]
        elif isinstance(thing, dict):
            yield thing
            inner = [
                thing[name]
                for name in ("@graph", "itemListElement", "item", "mainEntity", "publisher")
                if name in thing
            ]
            waiting += inner[::-1]


def kinds_of(thing: Mapping[str, Any]) -> set[str]:
    """The types of a thing without the address of their vocabulary."""
    said = thing.get("@type") or thing.get("type") or ()
    found = said if isinstance(said, list) else [said]
    return {str(kind)[:200].rstrip("/").rpartition("/")[2].lower() for kind in found[:10]}


def organization_facts(thing: Mapping[str, Any], country: str | None = None) -> Facts:
    """An organisation of schema.org in our fields: only what is valid."""
    address = _first(thing.get("address"))
    address = address if isinstance(address, dict) else {"text": address}
    home = countries.country(_text(address.get("addressCountry"))) or country
    spot = _first(thing.get("geo"))
    spot = spot if isinstance(spot, dict) else {}
    website = urls.website(_text(thing.get("url")))
    found: Facts = {
        "name": names.name(_text(thing.get("legalName")) or _text(thing.get("name"))),
        "street": places.street(_text(address.get("streetAddress"))),
        "city": places.city(_text(address.get("addressLocality"))),
        "postcode": places.postcode(_text(address.get("postalCode")), home),
        "region": countries.region(_text(address.get("addressRegion")), home),
        "country": countries.country(_text(address.get("addressCountry"))),
        "address": clean(_text(address.get("text")), 400),
        "lat": places.coordinate(_text(spot.get("latitude")), 90),
        "lon": places.coordinate(_text(spot.get("longitude")), 180),
        "phone": phones.phone(_text(thing.get("telephone")), home),
        "email": emails.email(_text(thing.get("email"))),
        "website": website,
        "employees": None,
        "opened": day(_text(thing.get("foundingDate"))),
        "legal_id": clean(_text(thing.get("taxID")) or _text(thing.get("identifier")), 60),
        "category": clean(_text(thing.get("category")) or _text(thing.get("knowsAbout")), 200),
    }
    for page in _list(thing.get("sameAs"))[:20]:
        if named := urls.platform_page(_text(page)):
            found.setdefault(*named)
    return {name: value for name, value in found.items() if value is not None}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _first(value: Any) -> Any:
    return (value[0] if value else None) if isinstance(value, list) else value


def _text(value: Any) -> Any:
    """The text of a value, which may be a list or an object with a name."""
    value = _first(value)
    if isinstance(value, dict):
        value = _first(value.get("name") or value.get("@value") or value.get("value"))
    return value if isinstance(value, str | int | float) else None


def _read_links(tree: LexborHTMLParser, url: str, facts: Facts, country: str | None) -> None:
    """What links of a page say outright: `tel:`, `mailto:`, pages on platforms."""
    home = facts.get("country") or country
    for node in tree.css("a[href]")[:MOST_LINES]:
        href = node.attributes.get("href") or ""
        if href.startswith("tel:"):
            _add(facts, "phones", phones.phone(href, home), MOST_PHONES)
        elif href.startswith("mailto:"):
            _add_email(facts, emails.email(href))
        elif page := urls.platform_page(href):
            facts.setdefault(*page)
    for name in ("phones", "emails"):
        if facts.get(name):
            facts[f"linked_{name}"] = list(facts[name])


def _add(facts: Facts, name: str, value: str | None, most: int) -> None:
    found = facts.setdefault(name, [])
    if value is not None and value not in found and len(found) < most:
        found.append(value)


def _add_email(facts: Facts, value: str | None) -> None:
    if value is not None and not is_sample(value):
        _add(facts, "emails", value, MOST_EMAILS)


def _read_text(tree: LexborHTMLParser, facts: Facts, country: str | None) -> None:
    """What stands in the text: e-mail addresses, also those that are spelled out, numbers, one address."""
    home = facts.get("country") or country
    lines = _lines(tree)
    if any(_PARKED.search(line) for line in [facts.get("title", ""), *lines[:50]]):
        facts["is_parked"] = True
    for line in lines:
        if "@" in line or "at" in line:
            plain = _HIDDEN_DOT.sub(".", _HIDDEN_AT.sub("@", line))
            for found in _EMAIL.findall(plain)[:MOST_EMAILS]:
                _add_email(facts, emails.email(found))
        for match in _PHONE.finditer(line):
            _add(facts, "phones", phones.phone(match[0], home), MOST_PHONES)
    if "street" not in facts:
        facts.update(_address_in(lines, home, facts.pop("address", None)))
    for name in ("phones", "emails"):
        if not facts.get(name):
            facts.pop(name, None)


def _lines(tree: LexborHTMLParser) -> list[str]:
    """The lines of the text; what stands around the main text counts too: that is where contacts are."""
    around = [node.text(separator=" ") for node in tree.css("address, footer")[:20]]
    own = [clean(text, LONGEST_LINE) for text in around]
    text = main_text(tree)
    found = [line[:LONGEST_LINE] for line in text.split("\n")[:MOST_LINES] if line.strip()]
    return [line for line in own if line] + found


def _address_in(lines: Sequence[str], country: str | None, said: str | None) -> Facts:
    """The parts of the first line that is an address."""
    if said is not None and (parts := parsed_address(said, country)):
        return dict(parts)
    pattern = places.postcode_pattern(country or "US")
    if pattern is None:
        return {}
    likely = [line for line in lines if len(line) <= 200 and pattern.search(line)]
    for line in likely[:10]:
        bare = re.sub(
            r"^(?:address|adresse|anschrift|visit us|find us)[^:]{0,20}: *",
            "",
            line,
            flags=re.IGNORECASE,
        )
        if "street" in (parts := parsed_address(bare, country)) and "postcode" in parts:
            return dict(parts)
    return {}


def contact_links(html: str | bytes, url: str, most: int = 3) -> list[str]:
    """Pages of the same site that may tell how to reach the company, contact pages first."""
    text = html.decode("utf-8", "replace") if isinstance(html, bytes) else html
    tree, _ = parsed_tree(text[:MOST_BYTES])
    host = urls.host_of(url)
    found: dict[str, int] = {}
    for link in links_of(tree, url):
        address = urls.web_url(link)
        if address is None or address == url or urls.host_of(address) != host:
            continue
        match = _CONTACT.search(address.partition("//")[2].partition("/")[2])
        if match:
            found.setdefault(
                address,
                0 if match[0].lower() in ("contact", "kontakt", "impressum", "imprint") else 1,
            )
    return sorted(found, key=lambda each: (found[each], each))[:most]


def with_site(company: Company, pages: Iterable[Mapping[str, Any]]) -> Company:
    """The company with what the pages of its site say.

    A parked site says nothing, and neither does one that gives another address: it speaks for the company
    that this is a branch of.
    """
    said = [facts for facts in pages if not facts.get("is_parked")]
    if company.get("street") and any(_is_elsewhere(company, facts) for facts in said):
        return company
    made = company
    for facts in said:
        made = with_claims(made, _claims(made, facts))
    return made


def _is_elsewhere(company: Company, facts: Mapping[str, Any]) -> bool:
    place = _place(facts)
    return place is not None and not is_same_address(company, place)


def _claims(company: Company, facts: Mapping[str, Any]) -> Iterator[Claim]:
    source = facts.get("described_by")
    if source is not None:
        told = "phone email lat lon opened category employees".split()
        yield from (Claim.of(field, facts[field], source) for field in told if field in facts)
        if "name" in facts and _is_spelling(company["name"], facts["name"]):
            yield Claim.of("name", facts["name"], source)
    yield from _address_claims(company, facts, source or "contact-text")
    for kind, field in (("phones", "phone"), ("emails", "email")):
        best = _best(facts, kind, company.get("domain"))
        if best is not None:
            yield Claim.of(field, *best)
    for field in ("linkedin", "facebook", "twitter"):
        if field in facts:
            yield Claim.of(field, facts[field], source or "contact-link")


def _address_claims(company: Company, facts: Mapping[str, Any], source: str) -> Iterator[Claim]:
    """An address is taken as a whole: parts of two addresses make none."""
    place = _place(facts)
    if place is not None:
        parts = place.parts(*_ADDRESS)
        yield from (Claim.of(part, value, source) for part, value in parts.items())


def _place(facts: Mapping[str, Any]) -> Place | None:
    """The address that a page gives, if it is a whole one."""
    parts = {part: facts[part] for part in _ADDRESS if part in facts}
    if "street" not in parts or not ("city" in parts or "postcode" in parts):
        return None
    return Place(**parts)


def _is_spelling(ours: str, theirs: str) -> bool:
    """Whether two names are one in two spellings: no word more, and none less."""
    one, two = name_key(ours), name_key(theirs)
    return len(one.split()) == len(two.split()) and fuzz.ratio(one, two) >= SPELLING


def _best(facts: Mapping[str, Any], kind: str, domain: str | None) -> tuple[str, str] | None:
    """The value to believe: linked before written, below the company's domain before others, roles first."""
    linked, written = facts.get(f"linked_{kind}", []), facts.get(kind, [])
    if kind == "phones":
        return (
            (linked[0], "contact-link")
            if linked
            else (written[0], "contact-text")
            if len(written) == 1
            else None
        )
    own = [email for email in written if domain is None or urls.domain_of(email) == domain]
    free = [email for email in written if is_free(email)]
    found = sorted(own or free, key=lambda email: email.partition("@")[0] not in ROLES)
    if not found:
        return None
    return found[0], "contact-link" if found[0] in linked else "contact-text"
