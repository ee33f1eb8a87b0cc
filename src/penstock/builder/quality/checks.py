"""Checks of one company: what of it is missing, invalid or at odds with the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.builder.company import Company
from penstock.builder.enrich.email import judge_email
from penstock.builder.enrich.phone import judge_phone
from penstock.builder.normalize import countries, emails, identifiers, names, places, urls

# What an issue means, and the field that it is about.
ISSUES = {
    "name_missing": ("name", "There is no name"),
    "street_missing": ("street", "There is no street"),
    "city_missing": ("city", "There is no city"),
    "postcode_missing": ("postcode", "There is no postcode"),
    "postcode_invalid": ("postcode", "The country has no such postcodes"),
    "country_missing": ("country", "There is no country"),
    "country_invalid": ("country", "It is no code of a country"),
    "coordinates_missing": ("lat", "There are no coordinates"),
    "phone_missing": ("phone", "There is no telephone number"),
    "phone_invalid": ("phone", "The plan of its country has no such number"),
    "phone_abroad": ("phone", "The number belongs to another country, or is a premium one"),
    "email_missing": ("email", "There is no e-mail address"),
    "email_invalid": ("email", "It breaks the rules of addresses"),
    "email_implausible": ("email", "It takes no mail, is unread, or is below another domain"),
    "website_missing": ("website", "There is no website"),
    "website_invalid": ("website", "It is no address of a site"),
    "domain_unresolved": ("domain", "The DNS does not know the domain"),
    "legal_id_invalid": ("legal_id", "The register of its country has no such numbers"),
    "category_missing": ("category", "Nobody says what the company does"),
}


def check(company: Company) -> list[str]:
    """The issues of a company, in the order of `ISSUES`; `checks` of a company hold what the DNS said."""
    found = {*_place_issues(company), *_contact_issues(company), *_web_issues(company)}
    country = company.get("country")
    if names.name(company.get("name")) is None:
        found.add("name_missing")
    if company.get("legal_id") and identifiers.legal_id(company["legal_id"], country) is None:
        found.add("legal_id_invalid")
    if not company.get("category"):
        found.add("category_missing")
    return [issue for issue in ISSUES if issue in found]


def _place_issues(company: Company) -> list[str]:
    country, postcode = company.get("country"), company.get("postcode")
    found = [
        f"{part}_missing"
        for part in ("street", "city", "postcode", "country")
        if not company.get(part)
    ]
    if country and countries.country(country) != country:
        found.append("country_invalid")
    if postcode and places.postcode(postcode, country) is None:
        found.append("postcode_invalid")
    if company.get("lat") is None or company.get("lon") is None:
        found.append("coordinates_missing")
    return found


def _contact_issues(company: Company) -> list[str]:
    found = []
    if not company.get("phone"):
        found.append("phone_missing")
    elif not (judged := judge_phone(company["phone"], company.get("country")))["plausible"]:
        found.append("phone_invalid" if judged["reason"] == "syntax" else "phone_abroad")
    if not company.get("email"):
        found.append("email_missing")
    elif emails.email(company["email"]) is None:
        found.append("email_invalid")
    elif not _email_judgement(company)["plausible"]:
        found.append("email_implausible")
    return found


def _email_judgement(company: Company) -> Mapping[str, Any]:
    """What was found out with the DNS, if it was about this address; else what the address itself tells."""
    known = _checks(company).get("email")
    if (
        isinstance(known, Mapping)
        and known.get("of") in (None, company["email"])
        and "plausible" in known
    ):
        return known
    return judge_email(company["email"], company.get("domain"))


def _web_issues(company: Company) -> list[str]:
    found = []
    if not company.get("website"):
        found.append("website_missing")
    elif urls.website(company["website"]) is None:
        found.append("website_invalid")
    if company.get("domain") and is_resolved(company) is False:
        found.append("domain_unresolved")
    return found


def is_resolved(company: Company) -> bool | None:
    """Whether the DNS knows the company's domain; None if nobody asked, or it did not say."""
    known = _checks(company).get("dns")
    said = known.get(company.get("domain")) if isinstance(known, Mapping) else None
    if isinstance(said, Mapping):
        said = said.get("exists")
    return said if isinstance(said, bool) else None


def has_asked(company: Company) -> bool:
    """Whether the company has a domain, or had one that was asked about."""
    return bool(company.get("domain") or _checks(company).get("dns"))


def _checks(company: Company) -> Mapping[str, Any]:
    known = company.get("checks")
    return known if isinstance(known, Mapping) else {}
