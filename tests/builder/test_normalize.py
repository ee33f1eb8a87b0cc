"""Normalised values: one spelling for one thing, and None for what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.builder.normalize import countries, emails, identifiers, names, phones, places, urls
from penstock.builder.normalize.standardize import day, standardize


@pytest.mark.parametrize(
    ("spellings", "key", "form"),
    [
        (["ACME Tools, Inc.", "Acme Tools Incorporated", "acme  tools inc"], "acme tools", "Inc"),
        (
            ["Müller & Söhne GmbH & Co. KG", "Muller and Sohne GmbH & Co KG"],
            "muller and sohne",
            "GmbH & Co. KG",
        ),
        (["SARL L'Étoile", "L’Etoile S.A.R.L."], "letoile", "SARL"),
        (["Blue Door", "The BLUE DOOR"], "blue door", None),
    ],
)
def test_spellings_of_one_name_have_one_key(
    spellings: list[str], key: str, form: str | None
) -> None:
    assert {names.name_key(each) for each in spellings} == {key}
    assert {names.split_legal_form(each)[1] for each in spellings} == {form}


def test_a_name_that_is_only_a_legal_form_stays_a_name() -> None:
    assert names.split_legal_form("Limited") == ("Limited", None)
    assert names.name_key("Co") == "co"


@pytest.mark.parametrize(
    "nothing", [None, "", "  ", "N/A", "null", "-", "\u200b", True, [], {}, "???"]
)
def test_what_says_nothing_is_none(nothing: Any) -> None:
    assert names.name(nothing) is None
    assert phones.phone(nothing, "US") is None
    assert emails.email(nothing) is None
    assert urls.website(nothing) is None
    assert places.postcode(nothing, "US") is None
    assert countries.country(nothing) is None


VALUES: list[tuple[str | None, str | None]] = [
    (phones.phone("(202) 555-0143", "US"), "+12025550143"),
    (phones.phone("tel:+44 20 7946 0018"), "+442079460018"),
    (phones.phone("202-555-0143"), None),  # of which country?
    (phones.phone("12345", "US"), None),
    (emails.email("<Info@ACME.com>"), "info@acme.com"),
    (emails.email("mailto:a@acme.localhost?subject=x"), "a@acme.localhost"),
    (emails.email("a b@acme.com"), None),
    (emails.email("a@acme"), None),
    (emails.email("a..b@acme.com"), None),
    (urls.website("WWW.Acme.com"), "http://www.acme.com/"),
    (urls.website("https://acme.com:443/x?utm_source=a#b"), "https://acme.com/x"),
    (urls.website("https://facebook.com/acme"), None),
    (urls.website("https://10.0.0.1/"), None),
    (urls.website("info@acme.com"), None),
    (urls.website("javascript:alert(1)"), None),
    (urls.domain_of("http://shop.acme.co.uk/a"), "acme.co.uk"),
    (urls.domain_of("x@mail.acme.com"), "acme.com"),
    (urls.domain_of("joe.wixsite.com/home"), "joe.wixsite.com"),
    (urls.domain_of("acme.localhost:8080"), "acme.localhost"),
    (places.postcode("2134", "US"), "02134"),
    (places.postcode("02134-1234", "US"), "02134-1234"),
    (places.postcode("sw1a1aa", "GB"), "SW1A 1AA"),
    (places.postcode("ABCDE", "US"), None),
    (places.city("62704"), None),
    (countries.country("Deutschland"), "DE"),
    (countries.country("u.s.a."), "US"),
    (countries.country("United Kingdom"), "GB"),
    (countries.country("Freedonia"), None),
    (countries.region("Illinois", "US"), "IL"),
    (countries.region("Bavaria", "US"), None),
    (identifiers.legal_id("552 100 554", "FR"), "552100554"),
    (identifiers.legal_id("552 100 555", "FR"), None),
    (identifiers.legal_id("552 100 554 00025", "FR"), "552100554"),
    (identifiers.legal_id("12-3456789", "US"), "123456789"),
    (day("2004-02-29"), "2004-02-29"),
    (day("2004-02-30"), None),
    (day("03/04/2005"), None),
]  # fmt: skip


@pytest.mark.parametrize(("found", "expected"), VALUES)
def test_a_value_has_one_spelling_or_is_none(found: str | None, expected: str | None) -> None:
    assert found == expected


def test_a_row_becomes_a_company_with_what_is_certain() -> None:
    row = {
        "Company Name": "  ACME\u00a0Tools, LLC ",
        "Zip Code": 2134,
        "State": "massachusetts",
        "Town": "Boston",
        "Telephone": "617 555 0188",
        "E-Mail": "not an address",
        "Web": "facebook.com/acmetools",
        "Lat": "0",
        "Lng": "0.0",
        "Founded": "1998",
        "Staff": "12.0",
        "odd": object(),
    }
    company = standardize(row, country="US", source="dump:register")
    assert company is not None
    evidence = company.pop("evidence")
    assert company == {
        "name": "ACME Tools, LLC",
        "country": "US",
        "city": "Boston",
        "postcode": "02134",
        "region": "MA",
        "phone": "+16175550188",
        "facebook": "https://facebook.com/acmetools",
        "legal_form": "LLC",
        "employees": 12,
        "opened": "1998",
        "sources": ["dump:register"],
    }
    assert evidence["phone"] == {"source": "dump:register", "confidence": 0.7}
    assert standardize({"phone": "617 555 0188"}, country="US") is None
    assert standardize({"a": "Acme", "name": "x"}, fields={"name": "a"}) == {
        "name": "Acme", "sources": ["dump"], "evidence": {"name": {"source": "dump", "confidence": 0.7}},
    }  # fmt: skip
