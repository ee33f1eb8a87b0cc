"""Places as geocoders and maps describe them, and whether one of them is a company's."""

from __future__ import annotations

from typing import Any

import msgspec
from rapidfuzz import fuzz

from penstock.builder.company import Company
from penstock.builder.normalize.names import name_key
from penstock.builder.normalize.places import street_key
from penstock.builder.normalize.text import plain


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place of the world, with what its provider knows about it."""

    name: str | None = None
    street: str | None = None
    city: str | None = None
    region: str | None = None
    postcode: str | None = None
    country: str | None = None
    lat: float | None = None
    lon: float | None = None
    phone: str | None = None
    website: str | None = None
    category: str | None = None
    is_closed: bool = False

    def parts(self, *fields: str) -> dict[str, Any]:
        return {field: value for field in fields if (value := getattr(self, field)) is not None}


def is_same_address(company: Company, place: Place) -> bool:
    """Whether a place lies at the company's address: nothing contradicts it, and street or postcode agree."""
    if _differs(company.get("country"), place.country):
        return False
    has_same_code = _code(company.get("postcode")) == _code(place.postcode) != ""
    if company.get("postcode") and place.postcode and not has_same_code:
        return False
    if not has_same_code and _differs(company.get("city"), place.city):
        return False
    streets = company.get("street"), place.street
    if streets[0] and streets[1]:
        return is_same_street(streets[0], streets[1])
    return has_same_code


def is_same_street(ours: str, theirs: str) -> bool:
    """Whether two streets are one but for their spelling; another house number is another house."""
    one, two = street_key(ours), street_key(theirs)
    return _numbers(one)[:1] == _numbers(two)[:1] and _alike(one, two) >= 85


def _numbers(street: str) -> list[str]:
    return [word for word in street.split() if word[0].isdigit()]


def is_same_name(company: Company, place: Place) -> bool:
    """Whether a place bears the company's name, perhaps with a word more."""
    if place.name is None:
        return False
    ours, theirs = name_key(company["name"]), name_key(place.name)
    is_within = min(len(ours), len(theirs)) >= 6 and fuzz.token_set_ratio(ours, theirs) >= 97
    return fuzz.token_sort_ratio(ours, theirs) >= 88 or is_within


def _code(text: str | None) -> str:
    return (text or "").replace(" ", "").partition("-")[0]


def _differs(ours: str | None, theirs: str | None) -> bool:
    return bool(ours and theirs and _alike(plain(ours), plain(theirs)) < 85)


def _alike(ours: str, theirs: str) -> float:
    return float(fuzz.ratio(ours, theirs))
