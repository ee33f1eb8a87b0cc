"""Traits: what of a company is compared, made once for each."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.builder.company import Company
from penstock.builder.enrich.email import is_free
from penstock.builder.normalize.names import name_key, name_words
from penstock.builder.normalize.places import street_key
from penstock.builder.normalize.text import plain


class Traits(msgspec.Struct, frozen=True):
    """A company as it is compared. An empty text is not known."""

    name: str
    words: tuple[str, ...]
    legal_id: str
    country: str
    phone: str
    domain: str
    email: str
    street: str
    city: str
    postcode: str


def traits_of(company: Company) -> Traits:
    """The traits of one company; a free mailbox is an address like any other, and tells no domain."""
    email = _text(company.get("email"))
    domain = _text(company.get("domain"))
    if not domain and email and not is_free(email):
        domain = email.rpartition("@")[2]
    name = _text(company.get("name"))
    return Traits(
        name=name_key(name),
        words=tuple(name_words(name)),
        legal_id=_text(company.get("legal_id")),
        country=_text(company.get("country")),
        phone=_text(company.get("phone")),
        domain=domain,
        email=email.lower(),
        street=street_key(_text(company.get("street"))),
        city=plain(_text(company.get("city"))),
        postcode=_text(company.get("postcode")).replace(" ", "").partition("-")[0],
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
