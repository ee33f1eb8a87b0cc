"""Classifying a site: what it is, by what it says of itself. Without clear words it is not said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.agents.learn.page import Page, text_of
from penstock.agents.learn.vocabulary import plain
from penstock.agents.schema import SiteType

CLEAR = 0.6
FEWEST_POINTS = 3.0
_WORDS: dict[SiteType, dict[str, float]] = {
    "dealer_website": {
        "dealer": 2, "dealership": 3, "our inventory": 2, "showroom": 2, "test drive": 2, "trade in": 2,
        "financing": 1, "cars for sale": 2, "autohaus": 3, "gebrauchtwagen": 2, "concession": 2,
    },
    "auction_house": {
        "auction": 2, "auctions": 2, "lot": 1, "lots": 1, "bid": 1, "bidding": 2, "hammer price": 3,
        "auktion": 3, "auktionshaus": 3, "encheres": 3, "buyer premium": 3,
    },
    "marketplace": {
        "marketplace": 3, "sell your": 2, "post an ad": 3, "private sellers": 3, "listings": 1,
        "classifieds": 3, "marktplatz": 3, "anzeige": 1, "petites annonces": 3,
    },
    "builder": {
        "custom builds": 3, "our builds": 3, "custom builder": 3, "commission a build": 3, "builds": 1,
        "restomod": 2, "coachbuilder": 3,
    },
    "manufacturer": {
        "manufacturer": 2, "we manufacture": 3, "our factory": 3, "hersteller": 2, "werk": 1, "fabricant": 2,
        "made in our": 2,
    },
    "broker": {"broker": 3, "brokerage": 3, "on behalf of": 2, "consignment": 2, "makler": 3, "courtier": 3},
    "service_shop": {
        "service": 1, "repair": 2, "repairs": 2, "workshop": 2, "book an appointment": 3, "werkstatt": 3,
        "reparatur": 2, "garage": 1,
    },
    "supplier": {
        "supplier": 3, "wholesale": 2, "distributor": 2, "parts catalog": 3, "parts": 1, "in stock": 1,
        "lieferant": 3, "fournisseur": 3,
    },
    "fabricator": {
        "fabrication": 3, "fabricator": 3, "welding": 2, "sheet metal": 3, "cnc": 1, "laser cutting": 2,
    },
    "directory": {
        "directory": 3, "find a company": 3, "add your company": 3, "list your business": 3,
        "companies listed": 3, "branchenbuch": 3, "verzeichnis": 3, "annuaire": 3,
    },
    "oem": {"oem": 3, "original equipment": 3},
    "platform": {"platform": 2, "api": 1, "integrations": 2, "sign up free": 2},
}  # fmt: skip
_TYPES: dict[str, SiteType] = {
    "AutoDealer": "dealer_website",
    "AutoRepair": "service_shop",
    "AutoPartsStore": "supplier",
}


@dataclass(frozen=True, slots=True)
class Classified:
    site_type: SiteType | None
    confidence: float | None


def classify(pages: Sequence[Page]) -> Classified:
    """The type that most points speak for; None where two are as likely, or nothing speaks."""
    points: Counter[SiteType] = Counter()
    for page in pages:
        text = f" {plain(_texts(page))} "
        for site_type, words in _WORDS.items():
            for word, weight in words.items():
                count = len(re.findall(rf" {re.escape(word)}(?= )", text))
                points[site_type] += weight * min(count, 3)  # type: ignore[assignment]
        for thing in page.things:
            said = _TYPES.get(str(thing.get("@type")))
            if said is not None:
                points[said] += 4
    ranked = points.most_common(2)
    if not ranked or ranked[0][1] < FEWEST_POINTS:
        return Classified(None, None)
    second = ranked[1][1] if len(ranked) > 1 else 0
    confidence = round(ranked[0][1] / (ranked[0][1] + second), 3)
    return Classified(ranked[0][0] if confidence >= CLEAR else None, confidence)


def _texts(page: Page) -> str:
    body = page.tree.body
    about = [page.graph.get(name, "") for name in ("title", "description", "og:description")]
    return " ".join([*about, text_of(body) if body is not None else ""])[:20_000]


def name_of_site(pages: Sequence[Page]) -> str | None:
    """What the site calls itself: where OpenGraph says it, or its organisation."""
    for page in pages:
        if said := page.graph.get("og:site_name"):
            return said[:200]
        for thing in page.things:
            if thing.get("@type") in ("WebSite", "Organization", *_TYPES) and thing.get("name"):
                return str(thing["name"])[:200]
    return None
