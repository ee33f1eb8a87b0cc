"""The sites of a city's companies, as HTML."""

from __future__ import annotations

import html
from typing import Any

import msgspec

from penstock.builder.city.world import Resident

CONTACT = "/contact"
PARKED = (
    b"<!doctype html><html><head><title>%s</title></head>"
    b"<body><h1>This domain is for sale</h1></body></html>"
)
# How much is left of a page that is cut off.
CUT = 0.45


def page(resident: Resident, path: str) -> bytes | None:
    """A page of a company's site; None where there is none."""
    if resident.site == "parked":
        return PARKED % (resident.host or "").encode()
    if path == "/":
        body = _home(resident)
    elif path == CONTACT:
        body = _contact(resident)
    elif path == "/about":
        body = _document(resident, "About us", "<p>We have been here for years.</p>")
    else:
        return None
    found = body.encode()
    return found[: int(len(found) * CUT)] if resident.site == "cut off" else found


def _home(resident: Resident) -> str:
    truth = resident.truth
    words = f"<h1>{_text(truth['name'])}</h1><p>{_text(truth['category'])} in {_text(truth['city'])}.</p>"
    links = f'<p><a href="{CONTACT}">Contact</a> <a href="/about">About us</a></p>'
    head = ""
    if resident.template == "json-ld":
        head = f'<script type="application/ld+json">{_json_ld(truth)}</script>'
    elif resident.template == "microdata":
        words += _microdata(truth)
    elif resident.template == "footer":
        links += (
            f"<footer>{_address_line(truth)} | {_phone(truth)} | {_text(truth['email'])}</footer>"
        )
    return _document(
        resident, f"{truth['category'].title()} in {truth['city']}", words + links, head
    )


def _contact(resident: Resident) -> str:
    truth = resident.truth
    lines = [f"<p>{_address_line(truth)}</p>"]
    if resident.template == "spelled out":
        box, _, domain = (truth["email"] or "").partition("@")
        spelled = f"{box} [at] {domain.replace('.', ' [dot] ')}"
        lines += [f"<p>Call {_phone(truth)}</p>", f"<p>Write to {_text(spelled)}</p>"]
    else:
        lines += [
            f'<p><a href="tel:{truth["phone"]}">{_phone(truth)}</a></p>',
            f'<p><a href="mailto:{_text(truth["email"])}">{_text(truth["email"])}</a></p>',
        ]
    for name in ("linkedin", "facebook"):
        if truth.get(name):
            lines.append(f'<p><a href="{_text(truth[name])}">{name}</a></p>')
    return _document(resident, "Contact", "".join(lines))


def _document(resident: Resident, title: str, body: str, head: str = "") -> str:
    name = _text(resident.truth["name"])
    return (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{name} – {_text(title)}</title>"
        f"{head}</head>\n<body>{body}</body></html>\n"
    )


def _json_ld(truth: dict[str, Any]) -> str:
    """What the page tells programs; `<` is escaped, so that no name ends the script."""
    same_as = [truth[name] for name in ("linkedin", "facebook") if truth.get(name)]
    thing = {
        "@context": "https://schema.org",
        "@type": "LocalBusiness",
        "name": truth["name"],
        "telephone": truth["phone"],
        "email": truth["email"],
        "url": truth["website"],
        "foundingDate": truth["opened"],
        "address": {
            "@type": "PostalAddress",
            "streetAddress": truth["street"],
            "addressLocality": truth["city"],
            "addressRegion": truth["region"],
            "postalCode": truth["postcode"],
            "addressCountry": truth["country"],
        },
        "sameAs": same_as,
    }
    return msgspec.json.encode(thing).decode().replace("<", "\\u003c")


def _microdata(truth: dict[str, Any]) -> str:
    parts = {
        "streetAddress": truth["street"],
        "addressLocality": truth["city"],
        "addressRegion": truth["region"],
        "postalCode": truth["postcode"],
        "addressCountry": truth["country"],
    }
    address = "".join(
        f'<span itemprop="{name}">{_text(value)}</span> ' for name, value in parts.items()
    )
    email = f'<span itemprop="email">{_text(truth["email"])}</span>' if truth["email"] else ""
    return (
        '<div itemscope itemtype="https://schema.org/LocalBusiness">'
        f'<span itemprop="name">{_text(truth["name"])}</span> '
        f'<div itemprop="address" itemscope itemtype="https://schema.org/PostalAddress">{address}</div>'
        f'<span itemprop="telephone">{truth["phone"]}</span> {email}</div>'
    )


def entry_page(row: dict[str, Any]) -> bytes:
    """A page of the directory about one company, which it describes in one of two ways."""
    truth = {"email": None, "website": None, "opened": None, "country": "US", **row}
    told = _microdata(truth)
    if row["style"] == "json-ld":
        told = f'<script type="application/ld+json">{_json_ld(truth)}</script>'
    return (
        f"<!doctype html>\n<html><head><meta charset=utf-8><title>{_text(row['name'])} | City Directory"
        f"</title></head><body><h1>{_text(row['name'])}</h1>{told}</body></html>\n"
    ).encode()


DIRECTORY_HOME = (
    b'<!doctype html><html><head><title>City Directory</title><script type="application/ld+json">'
    b'{"@type": "Organization", "name": "City Directory"}</script></head>'
    b"<body><h1>All companies of the city</h1></body></html>"
)


def _address_line(truth: dict[str, Any]) -> str:
    return _text(f"{truth['street']}, {truth['city']}, {truth['region']} {truth['postcode']}")


def _phone(truth: dict[str, Any]) -> str:
    digits = truth["phone"][-10:]
    return f"({digits[:3]}) {digits[3:6]}-{digits[6:]}"


def _text(value: Any) -> str:
    return html.escape("" if value is None else str(value))
