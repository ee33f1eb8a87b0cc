"""A row of a dump, an API or a list, as a company."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from penstock.builder.claims import Claim, with_claims
from penstock.builder.company import Company
from penstock.builder.normalize import countries, emails, identifiers, names, phones, places, urls
from penstock.builder.normalize.text import clean, plain

# What columns of others are called, for each field. The first that is there and not empty counts.
ALIASES = {
    "name": "name company company_name business_name organisation organization raison_sociale firma title",
    "legal_form": "legal_form legalform rechtsform forme_juridique",
    "legal_id": "legal_id registration_number company_number siren siret ein register_number",
    "category": "category industry sector activity type",
    "activity_code": "activity_code naf code_naf naf_code ape code_ape activite_principale nace nace_code "
    "sic sic_code",
    "street": "street street_address address_line1 address1 line1 adresse strasse",
    "address": "address full_address formatted_address location",
    "city": "city town locality ville ort municipality",
    "postcode": "postcode postal_code zip zipcode zip_code code_postal plz",
    "region": "region state province county",
    "country": "country country_code pays land",
    "lat": "lat latitude",
    "lon": "lon lng longitude",
    "phone": "phone telephone tel phone_number telefon",
    "email": "email e_mail mail email_address",
    "website": "website url web homepage site www",
    "linkedin": "linkedin linkedin_url",
    "facebook": "facebook facebook_url",
    "twitter": "twitter twitter_url x_url",
    "employees": "employees headcount staff effectif",
    "opened": "opened founded founding_date created established date_creation",
}
MOST_COLUMNS = 500
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?:T.*)?")
_NO_WORD = re.compile(r"[^a-z0-9]+")


def standardize(
    row: Mapping[str, Any],
    *,
    country: str | None = None,
    fields: Mapping[str, str] | None = None,
    source: str = "dump",
) -> Company | None:
    """The company of a row; None if the row names none.

    `country` is where rows without one belong: the caller knows his list. `fields` says which column holds a
    field where its name does not tell. An address in one column stays as `address` for a parser.
    """
    given = _picked(row, fields or {})
    named = names.name(given.get("name"))
    if named is None:
        return None
    found = countries.country(given.get("country")) or country
    values = {
        "name": named,
        "country": found,
        **_placed(given, found),
        **_reached(given, found),
        **_facts(given, named, found),
    }
    company = with_claims({}, [Claim.of(field, value, source) for field, value in values.items()])
    address = clean(given.get("address"), 400)
    if address is not None and company.get("street") is None:
        company["address"] = address
    return {**company, "sources": [source]}


def _picked(row: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for number, (column, value) in enumerate(row.items()):
        if number >= MOST_COLUMNS:
            break
        if value not in (None, ""):
            columns.setdefault(_bare(column), value)
    picked = {field: _first(columns, aliases.split()) for field, aliases in ALIASES.items()}
    picked.update({field: row[column] for field, column in fields.items() if column in row})
    return picked


def column_fields(columns: Sequence[str | None]) -> list[str | None]:
    """The field that each column of a table holds, by its name; None for the others."""
    known = {
        alias: field for field, aliases in reversed(ALIASES.items()) for alias in aliases.split()
    }
    return [None if column is None else known.get(_bare(column)) for column in columns]


def _bare(column: Any) -> str:
    return _NO_WORD.sub("_", plain(str(column)[:100])).strip("_")


def _first(columns: Mapping[str, Any], aliases: list[str]) -> Any:
    return next(
        (columns[alias] for alias in aliases if clean(columns.get(alias)) is not None), None
    )


def _placed(given: Mapping[str, Any], country: str | None) -> dict[str, Any]:
    lat, lon = places.coordinate(given["lat"], 90), places.coordinate(given["lon"], 180)
    # The point where both lines begin lies in the sea: a list has it where it has nothing.
    is_known = lat is not None and lon is not None and (lat, lon) != (0, 0)
    return {
        "street": places.street(given["street"]),
        "city": places.city(given["city"]),
        "postcode": places.postcode(given["postcode"], country),
        "region": countries.region(given["region"], country),
        "lat": lat if is_known else None,
        "lon": lon if is_known else None,
    }


def _reached(given: Mapping[str, Any], country: str | None) -> dict[str, Any]:
    website = urls.website(given["website"])
    pages = [
        urls.platform_page(given[name]) for name in ("linkedin", "facebook", "twitter", "website")
    ]
    found: dict[str, Any] = {page[0]: page[1] for page in reversed(pages) if page is not None}
    return {
        "phone": phones.phone(given["phone"], country),
        "email": emails.email(given["email"]),
        "website": website,
        "domain": None if website is None else urls.domain_of(website),
        **found,
    }


def _facts(given: Mapping[str, Any], named: str, country: str | None) -> dict[str, Any]:
    form, code = clean(given["legal_form"], 40), clean(given["activity_code"], 20)
    known = names.split_legal_form(f"x {form}")[1] if form else None
    return {
        "legal_form": known or names.split_legal_form(named)[1],
        "legal_id": identifiers.legal_id(given["legal_id"], country),
        "category": clean(given["category"], 200) or code,
        "activity_code": code,
        "employees": _count(given["employees"]),
        "opened": day(given["opened"]),
    }


def _count(value: Any) -> int | None:
    text = clean(value, 12)
    text = text.removesuffix(".0") if text else None
    return int(text) if text and text.isdecimal() and text.isascii() else None


def day(value: Any) -> str | None:
    """A day, month or year as ISO 8601; None for dates whose order of day and month could be either."""
    text = clean(value, 40)
    found = _DATE.fullmatch(text) if text else None
    if found is None:
        return None
    year, month, number = found.groups()
    try:
        date(int(year), int(month or 1), int(number or 1))
    except ValueError:
        return None
    return "-".join(part for part in (year, month, number) if part)
