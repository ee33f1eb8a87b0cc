"""The services of a city: its chamber's API, its directory, a search, a geocoder, a map, and the DNS."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from penstock.builder.city.lists import Row, api_page, directory_entries, listed
from penstock.builder.city.site_pages import DIRECTORY_HOME, entry_page
from penstock.builder.city.world import Resident, World
from penstock.builder.enrich.serp import Hit, LocalIndex
from penstock.builder.normalize.places import street_key
from penstock.builder.normalize.text import plain

CHAMBER, DIRECTORY, SEARCH, GEOCODER, MAPS, DNS = (
    f"{name}.localhost" for name in ("chamber", "directory", "search", "geocoder", "maps", "dns")
)
HOSTS = (CHAMBER, DIRECTORY, SEARCH, GEOCODER, MAPS, DNS)
PER_PAGE = 50
# Of a hundred companies, how many each service knows.
INDEXED_PCT, LOCATED_PCT, MAPPED_PCT = 92, 96, 85
NO_NAME, NO_MAIL = 3, "."
FREE_MAIL = ("gmail.com",)


class Services(msgspec.Struct, frozen=True, dict=True):
    """What each service answers, as JSON or as bytes; None for what is not there."""

    world: World

    def answer(self, host: str, path: str, query: Mapping[str, str], body: bytes) -> Any:
        if host == CHAMBER and path == "/members":
            return api_page(self._members, _number(query.get("page")), PER_PAGE)
        if host == DIRECTORY:
            return self._directory.get(path)
        if host == SEARCH and path == "/search":
            return {"query": query.get("q", ""), "results": self._hits(query.get("q", ""))}
        if host == GEOCODER and path == "/api":
            return {"type": "FeatureCollection", "features": self._features(query.get("q", ""))}
        if host == MAPS and path == "/v1/places:searchText":
            return {"places": self._places(body)}
        if host == DNS and path == "/resolve":
            return self._records(query.get("name", ""), query.get("type", "A"))
        return None

    @cached_property
    def _members(self) -> list[Row]:
        return [row for row, _ in listed(self.world)["chamber"]]

    @cached_property
    def _directory(self) -> dict[str, bytes]:
        pages = {path: entry_page(row) for path, row in directory_entries(self.world)}
        found = "".join(f"<url><loc>http://{DIRECTORY}{path}</loc></url>" for path in pages)
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        sitemap = f'<?xml version="1.0"?><urlset xmlns="{space}">{found}</urlset>'
        return {"/": DIRECTORY_HOME, "/sitemap.xml": sitemap.encode(), **pages}

    @cached_property
    def _index(self) -> LocalIndex:
        chance = self.world.chance("search")
        hits = [
            Hit(f"http://{each.host}/", each.truth["name"], _snippet(each))
            for each in self.world.residents
            if each.has_own_site and chance.randrange(100) < INDEXED_PCT
        ]
        hits += [
            Hit(f"http://{DIRECTORY}{path}", f"{row['name']} | City Directory", row["city"])
            for path, row in directory_entries(self.world)
        ]
        return LocalIndex(hits)

    def _hits(self, query: str) -> list[dict[str, str]]:
        found = self._index.search(query)
        return [{"url": hit.url, "title": hit.title, "content": hit.snippet} for hit in found]

    @cached_property
    def _addresses(self) -> dict[str, list[dict[str, Any]]]:
        """Known addresses by their house numbers."""
        chance = self.world.chance("geocoder")
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in self.world.residents:
            if chance.randrange(100) < LOCATED_PCT:
                found[each.truth["street"].partition(" ")[0]].append(each.truth)
        return found

    def _features(self, query: str) -> list[dict[str, Any]]:
        asked, words = street_key(query), plain(query)
        number = asked.partition(" ")[0]
        fitting = [
            truth
            for truth in self._addresses.get(number, [])
            if asked.startswith(street_key(truth["street"]))
            and (truth["postcode"] in query or plain(truth["city"]) in words)
        ]
        return [_feature(truth) for truth in fitting[:3]]

    @cached_property
    def _map(self) -> tuple[LocalIndex, dict[str, dict[str, Any]]]:
        chance = self.world.chance("maps")
        known = {
            f"http://p{each.number}.map.localhost/": each.truth
            for each in self.world.residents
            if chance.randrange(100) < MAPPED_PCT
        }
        hits = [Hit(url, truth["name"], truth["city"]) for url, truth in known.items()]
        return LocalIndex(hits), known

    def _places(self, body: bytes) -> list[dict[str, Any]]:
        index, known = self._map
        query = str(msgspec.json.decode(body or b"{}").get("textQuery", ""))
        return [_place(known[hit.url]) for hit in index.search(query)[:3]]

    @cached_property
    def _names(self) -> dict[str, bool]:
        """The names that there are, and whether they take mail."""
        names = dict.fromkeys((*HOSTS, *FREE_MAIL), True)
        for each in self.world.residents:
            if each.host is not None and each.site != "gone":
                names[each.host] = each.site != "parked"
        return names

    def _records(self, name: str, kind: str) -> dict[str, Any]:
        takes_mail = self._names.get(name.lower().rstrip(".").removeprefix("www."))
        if takes_mail is None:
            return {"Status": NO_NAME, "Answer": []}
        if kind == "MX":
            mail = f"10 mail.{name}." if takes_mail else f"0 {NO_MAIL}"
            return {"Status": 0, "Answer": [{"name": name, "type": 15, "data": mail}]}
        return {"Status": 0, "Answer": [{"name": name, "type": 1, "data": "127.0.0.1"}]}


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 1


def _snippet(resident: Resident) -> str:
    return f"{resident.truth['category']} in {resident.truth['city']}, {resident.truth['region']}"


def _feature(truth: dict[str, Any]) -> dict[str, Any]:
    number, _, street = truth["street"].partition(" ")
    about = {
        "housenumber": number,
        "street": street,
        "city": truth["city"],
        "state": truth["region"],
        "postcode": truth["postcode"],
        "countrycode": truth["country"],
    }
    spot = {"type": "Point", "coordinates": [truth["lon"], truth["lat"]]}
    return {"type": "Feature", "geometry": spot, "properties": about}


def _place(truth: dict[str, Any]) -> dict[str, Any]:
    number, _, street = truth["street"].partition(" ")
    parts = [
        ("street_number", number),
        ("route", street),
        ("locality", truth["city"]),
        ("administrative_area_level_1", truth["region"]),
        ("postal_code", truth["postcode"]),
        ("country", truth["country"]),
    ]
    return {
        "displayName": {"text": truth["name"]},
        "addressComponents": [
            {"longText": text, "shortText": text, "types": [kind]} for kind, text in parts
        ],
        "location": {"latitude": truth["lat"], "longitude": truth["lon"]},
        "internationalPhoneNumber": truth["phone"],
        "websiteUri": truth["website"],
        "primaryType": truth["category"].replace(" ", "_"),
        "businessStatus": "OPERATIONAL",
    }
