"""Geocoders: coordinates of an address, by services that speak like Photon or Nominatim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.builder.claims import Claim, with_claims
from penstock.builder.company import Company
from penstock.builder.enrich.places import Place, is_same_address
from penstock.builder.enrich.requests import Ask, mapping, rows, with_query, words_of
from penstock.builder.normalize import countries, places

MOST = 5


class Geocoder(Protocol):
    """Asks for an address and reads the answer."""

    def ask(self, company: Company) -> Ask | None:
        """The request; None if the company has no address to ask for."""
        ...

    def read(self, answer: Any) -> list[Place]: ...


def _query(company: Company) -> str | None:
    if company.get("city") is None and company.get("postcode") is None:
        return None
    return words_of(company, "street", "postcode", "city", "region", "country")


class Photon:
    """GeoJSON, as Photon answers: `GET /api?q=…&limit=5`."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def ask(self, company: Company) -> Ask | None:
        query = _query(company)
        return (
            None if query is None else Ask(with_query(self._base_url, "/api", q=query, limit=MOST))
        )

    def read(self, answer: Any) -> list[Place]:
        return [self._place(each) for each in rows(mapping(answer).get("features"))]

    def _place(self, feature: dict[str, Any]) -> Place:
        about = mapping(feature.get("properties"))
        lon, lat = _pair(mapping(feature.get("geometry")).get("coordinates"))
        country = countries.country(about.get("countrycode")) or countries.country(
            about.get("country")
        )
        return _place(about, country, lat, lon, about.get("housenumber"), about.get("street"))


class Nominatim:
    """JSON, as Nominatim answers: `GET /search?q=…&format=jsonv2&addressdetails=1`."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def ask(self, company: Company) -> Ask | None:
        query = _query(company)
        if query is None:
            return None
        fields = {"q": query, "format": "jsonv2", "addressdetails": 1, "limit": MOST}
        return Ask(with_query(self._base_url, "/search", **fields))

    def read(self, answer: Any) -> list[Place]:
        return [self._place(each) for each in rows(answer)]

    def _place(self, row: dict[str, Any]) -> Place:
        about = mapping(row.get("address"))
        city = next((about[name] for name in ("city", "town", "village") if name in about), None)
        country = countries.country(about.get("country_code"))
        return _place(
            {**about, "city": city, "name": row.get("name")},
            country,
            row.get("lat"),
            row.get("lon"),
            about.get("house_number"),
            about.get("road"),
        )


def _place(
    about: dict[str, Any], country: str | None, lat: Any, lon: Any, number: Any, road: Any
) -> Place:
    return Place(
        street=places.street(" ".join(str(part) for part in (number, road) if part))
        if road
        else None,
        city=places.city(about.get("city")),
        region=countries.region(about.get("state"), country),
        postcode=places.postcode(about.get("postcode"), country),
        country=country,
        lat=places.coordinate(lat, 90),
        lon=places.coordinate(lon, 180),
    )


def _pair(value: Any) -> tuple[Any, Any]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) >= 2 else (None, None)


GEOCODERS: dict[str, type[Photon] | type[Nominatim]] = {"photon": Photon, "nominatim": Nominatim}


def located(company: Company, found: Sequence[Place]) -> Company:
    """The company with coordinates and missing parts of the first place that lies at its address."""
    place = next(
        (each for each in found[:MOST] if each.lat is not None and is_same_address(company, each)),
        None,
    )
    if place is None:
        return company
    # A geocoder fills gaps: what it says about a part that is known was derived from that very part.
    parts = place.parts("lat", "lon", "city", "region", "postcode", "country")
    return with_claims(
        company,
        [
            Claim.of(part, value, "geocoder")
            for part, value in parts.items()
            if company.get(part) is None
        ],
    )
