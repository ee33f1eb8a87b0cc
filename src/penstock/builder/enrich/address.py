"""Addresses in one line, taken apart by a parser."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Protocol

from penstock.builder.claims import Claim, with_claims
from penstock.builder.company import Company
from penstock.builder.normalize import countries, places
from penstock.builder.normalize.text import clean

LONGEST = 200
PARTS = ("street", "city", "region", "postcode", "country")


class AddressParser(Protocol):
    """Takes an address apart. It answers with the parts that it is sure of, and with nothing if it is not."""

    def parse(self, text: str, country: str | None) -> dict[str, str]:
        """Some of street, city, region, postcode and country."""
        ...


class UsAddresses:
    """Addresses of the United States, by the model of `usaddress`."""

    _STREET = (
        "AddressNumberPrefix AddressNumber AddressNumberSuffix StreetNamePreModifier "
        "StreetNamePreDirectional StreetNamePreType StreetName StreetNamePostType "
        "StreetNamePostDirectional SubaddressType SubaddressIdentifier OccupancyType OccupancyIdentifier"
    ).split()

    def parse(self, text: str, country: str | None) -> dict[str, str]:
        import usaddress

        if country not in (None, "US"):
            return {}
        try:
            tags, kind = usaddress.tag(text)
        except usaddress.RepeatedLabelError:
            return {}
        zip_code = places.postcode(tags.get("ZipCode"), "US")
        state = countries.region(tags.get("StateName"), "US")
        # The model labels any line; only what ends like an address of this country is taken for one.
        if (
            kind not in ("Street Address", "PO Box")
            or state is None
            or (country is None and zip_code is None)
        ):
            return {}
        street = " ".join(tags[label].strip(" ,") for label in self._STREET if label in tags)
        box = " ".join(tags[label] for label in ("USPSBoxType", "USPSBoxID") if label in tags)
        found = {
            "street": places.street(street or box),
            "city": places.city(tags.get("PlaceName")),
            "region": state,
            "postcode": zip_code,
            "country": "US",
        }
        return {part: value for part, value in found.items() if value is not None}


class PostcodeAddresses:
    """Addresses with the postcode before the city: `12 rue de la Paix, 75002 Paris, France`.

    Reads only what stands apart by commas, in countries whose postcodes are known.
    """

    _LINE = re.compile(r"(?:[A-Z]{1,2}-)?([0-9A-Z][0-9A-Z -]{2,7}?)\s+(\D{2,80})")

    def parse(self, text: str, country: str | None) -> dict[str, str]:
        lines = [line.strip() for line in re.split(r"[,;\n]", text) if line.strip()]
        last = countries.country(lines[-1]) if len(lines) > 1 else None
        if last is not None:
            lines, country = lines[:-1], last
        if country is None or country == "US":
            return {}
        for at in range(1, len(lines)):
            found = self._LINE.fullmatch(lines[at])
            code = found and places.postcode(found[1], country)
            city = found and places.city(found[2])
            if code and city:
                street = places.street(", ".join(lines[:at]))
                whole = {"street": street, "city": city, "postcode": code, "country": country}
                return {part: value for part, value in whole.items() if value is not None}
        return {}


class Libpostal:
    """Addresses of any country, by libpostal where its Python package and data are installed."""

    def __init__(self) -> None:
        from importlib import import_module

        self._parse = import_module("postal.parser").parse_address

    def parse(self, text: str, country: str | None) -> dict[str, str]:
        labels: dict[str, str] = {}
        for value, label in self._parse(text):
            labels.setdefault(str(label), str(value))
        found = countries.country(labels.get("country")) or country
        number = labels.get("house_number", "")
        road = labels.get("road", "")
        street = (
            f"{number} {road}"
            if found in (None, "US", "GB", "CA", "FR", "AU")
            else f"{road} {number}"
        )
        whole = {
            "street": places.street(street.strip()) if road else None,
            "city": places.city(labels.get("city", "").title()),
            "region": countries.region(labels.get("state"), found),
            "postcode": places.postcode(labels.get("postcode"), found),
            "country": found,
        }
        return {part: value for part, value in whole.items() if value is not None}


class FirstOf:
    """The answer of the first parser that has one."""

    def __init__(self, *parsers: AddressParser) -> None:
        self._parsers = parsers

    def parse(self, text: str, country: str | None) -> dict[str, str]:
        return next((found for each in self._parsers if (found := each.parse(text, country))), {})


@cache
def usual_parser() -> AddressParser:
    """libpostal if it is installed with its data, else usaddress and postcodes."""
    try:
        return FirstOf(Libpostal(), UsAddresses(), PostcodeAddresses())
    except Exception:  # without its data, the package fails in ways of its own
        return FirstOf(UsAddresses(), PostcodeAddresses())


def parsed_address(
    text: Any, country: str | None, parser: AddressParser | None = None
) -> dict[str, str]:
    """The parts of an address in one line; empty if it can't be taken apart for certain."""
    line = clean(text, LONGEST + 1)
    if line is None or len(line) > LONGEST:
        return {}
    return (parser or usual_parser()).parse(line, country)


def with_address(company: Company, parser: AddressParser | None = None) -> Company:
    """The company with the parts of the address that it has in one line; the line goes."""
    made = dict(company)
    text = made.pop("address", None)
    parts = parsed_address(text, company.get("country"), parser)
    return with_claims(made, [Claim.of(part, value, "address") for part, value in parts.items()])
