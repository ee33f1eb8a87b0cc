"""Maps: what a Places API knows about a company, by text search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from penstock.builder.claims import Claim, with_claims
from penstock.builder.company import Company
from penstock.builder.enrich.places import Place, is_same_address, is_same_name
from penstock.builder.enrich.requests import Ask, mapping, rows, words_of
from penstock.builder.normalize import countries, names, phones, places, urls
from penstock.builder.normalize.text import clean

MOST = 5
FIELDS = (
    "displayName formattedAddress addressComponents location internationalPhoneNumber websiteUri "
    "primaryType businessStatus"
).split()


class MapsProvider(Protocol):
    """Asks a map for a company and reads the answer."""

    def ask(self, company: Company) -> Ask | None: ...

    def read(self, answer: Any) -> list[Place]: ...


class Places:
    """The Places API (New): `POST /v1/places:searchText`, for the fields that are used: they cost."""

    def __init__(self, base_url: str = "https://places.googleapis.com", key: str = "") -> None:
        self._base_url = base_url.rstrip("/")
        self._key = key

    def ask(self, company: Company) -> Ask | None:
        query = words_of(company, "name", "street", "city", "postcode", "region", "country")
        if query is None or not any(company.get(part) for part in ("city", "postcode", "street")):
            return None
        asked: dict[str, Any] = {"textQuery": query, "pageSize": MOST}
        if company.get("country"):
            asked["regionCode"] = company["country"]
        headers = {
            "Content-Type": "application/json",
            "X-Goog-FieldMask": ",".join(f"places.{field}" for field in FIELDS),
            **({"X-Goog-Api-Key": self._key} if self._key else {}),
        }
        return Ask(
            f"{self._base_url}/v1/places:searchText", "POST", headers, msgspec.json.encode(asked)
        )

    def read(self, answer: Any) -> list[Place]:
        return [_place(each) for each in rows(mapping(answer).get("places"))]


def _place(row: dict[str, Any]) -> Place:
    parts = _components(row.get("addressComponents"))
    country = countries.country(parts.get("country"))
    spot = mapping(row.get("location"))
    street = f"{parts.get('street_number', '')} {parts.get('route', '')}".strip()
    return Place(
        name=names.name(mapping(row.get("displayName")).get("text")),
        street=places.street(street) if "route" in parts else None,
        city=places.city(parts.get("locality") or parts.get("postal_town")),
        region=countries.region(parts.get("administrative_area_level_1"), country),
        postcode=places.postcode(parts.get("postal_code"), country),
        country=country,
        lat=places.coordinate(spot.get("latitude"), 90),
        lon=places.coordinate(spot.get("longitude"), 180),
        phone=phones.phone(row.get("internationalPhoneNumber")),
        website=urls.website(row.get("websiteUri")),
        category=_words(row.get("primaryType")),
        is_closed=row.get("businessStatus") == "CLOSED_PERMANENTLY",
    )


def _components(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in rows(value):
        kinds = part.get("types")
        text = clean(part.get("shortText")) if _is_short(kinds) else clean(part.get("longText"))
        for kind in kinds if isinstance(kinds, list) and text else ():
            found.setdefault(str(kind), text or "")
    return found


def _is_short(kinds: Any) -> bool:
    return isinstance(kinds, list) and bool(
        {"country", "administrative_area_level_1"} & {str(k) for k in kinds}
    )


def _words(kind: Any) -> str | None:
    text = clean(kind, 60)
    return text.replace("_", " ") if text else None


def with_place(company: Company, found: Sequence[Place]) -> Company:
    """The company with what the map knows of it: of the first place with its name, at its address.

    Without any part of an address a name alone is not enough. A place that has closed for good says nothing.
    """
    for place in found[:MOST]:
        if is_same_name(company, place) and is_same_address(company, place) and not place.is_closed:
            said = place.parts(
                "street", "city", "region", "postcode", "lat", "lon", "phone", "website", "category"
            )
            if place.website is not None:
                said["domain"] = urls.domain_of(place.website)
            return with_claims(
                company, [Claim.of(part, value, "maps") for part, value in said.items()]
            )
    return company
