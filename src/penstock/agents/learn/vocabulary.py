"""The fields that are known by name: what their values look like, and what sites call them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "text", "long", "money", "currency", "count", "year", "vin", "phone", "email", "date", "url",
    "images",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `said` are names of schema.org, `labels` words in front of a value."""

    name: str
    kind: Kind
    said: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


def _field(name: str, kind: Kind, said: str = "", labels: str = "") -> Field:
    return Field(name, kind, tuple(said.split()), tuple(each.strip() for each in labels.split(",")))


FIELDS: dict[str, Field] = {
    each.name: each
    for each in (
        _field("title", "text", "name headline", "title, titel, titre, titulo"),
        _field(
            "price",
            "money",
            "offers/price price offers/priceSpecification/price",
            "price, asking price, our price, sale price, list price, buy now, preis, kaufpreis, prix, precio",
        ),
        _field("currency", "currency", "offers/priceCurrency priceCurrency", "currency, wahrung"),
        _field(
            "current_bid",
            "money",
            "",
            "current bid, high bid, highest bid, aktuelles gebot, enchere actuelle, puja actual",
        ),
        _field("estimate", "text", "", "estimate, schatzpreis, estimation, estimacion"),
        _field(
            "description",
            "long",
            "description articleBody",
            "description, details, overview, about, about this vehicle, the story, beschreibung, "
            "descripcion",
        ),
        _field("images", "images", "image photo", ""),
        _field(
            "year",
            "year",
            "vehicleModelDate modelDate productionDate",
            "year, model year, baujahr, annee, ano",
        ),
        _field(
            "make",
            "text",
            "brand/name brand manufacturer/name manufacturer",
            "make, brand, manufacturer, marke, hersteller, marque, fabricant, marca, fabricante",
        ),
        _field("model", "text", "model/name model", "model, modell, modele, modelo"),
        _field(
            "mileage",
            "count",
            "mileageFromOdometer/value mileageFromOdometer",
            "mileage, odometer, miles, kilometers, kilometres, laufleistung, kilometerstand, kilometrage, "
            "kilometraje",
        ),
        _field(
            "vin",
            "vin",
            "vehicleIdentificationNumber",
            "vin, vin number, chassis, chassis number, chassis no, vehicle identification number, "
            "fahrgestellnummer, numero de chassis, bastidor",
        ),
        _field(
            "sku",
            "text",
            "sku productID",
            "sku, stock, stock number, stock no, stock #, item number, item no, part number, part no, "
            "artikelnummer, reference, ref, referencia",
        ),
        _field("lot", "text", "", "lot, lot number, lot no, losnummer, lote, numero de lot"),
        _field(
            "engine",
            "text",
            "vehicleEngine/name vehicleEngine",
            "engine, motor, moteur",
        ),
        _field(
            "transmission",
            "text",
            "vehicleTransmission",
            "transmission, gearbox, getriebe, boite, boite de vitesses, transmision, caja",
        ),
        _field(
            "color",
            "text",
            "color",
            "color, colour, exterior color, exterior colour, exterior, paint, farbe, aussenfarbe, couleur, "
            "exterieur",
        ),
        _field(
            "interior",
            "text",
            "vehicleInteriorColor",
            "interior, interior color, interior colour, innenausstattung, interieur",
        ),
        _field(
            "body",
            "text",
            "bodyType",
            "body, body style, body type, karosserie, carrosserie, carroceria",
        ),
        _field(
            "condition",
            "text",
            "itemCondition offers/itemCondition",
            "condition, zustand, etat, estado",
        ),
        _field(
            "availability",
            "text",
            "offers/availability",
            "availability, status, verfugbarkeit, disponibilite, disponibilidad",
        ),
        _field(
            "seller",
            "text",
            "offers/seller/name",
            "seller, consignor, verkaufer, vendeur, vendedor",
        ),
        _field(
            "location",
            "text",
            "offers/availableAtOrFrom/address/addressLocality location/name",
            "location, located in, standort, lieu, localisation, ubicacion",
        ),
        _field(
            "date",
            "date",
            "startDate datePublished",
            "date, auction date, sale date, ends, end date, closes, datum, auktionsdatum, date de vente, "
            "fecha",
        ),
        _field("phone", "phone", "telephone", "phone, telephone, tel, telefon, telefono"),
        _field("email", "email", "email", "email, e-mail, mail, courriel, correo"),
        _field("address", "text", "address", "address, adresse, anschrift, direccion"),
        _field("website", "url", "sameAs", "website, web, homepage, webseite, site web, sitio web"),
        _field("category", "text", "category", "category, kategorie, categorie, categoria"),
    )
}
# A field that is the same on all pages is the site's own, and says nothing about an item.
OF_THE_SITE = frozenset({"phone", "email", "address", "website"})
_NOT_WORD = re.compile(r"[^a-z0-9#]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
LONGEST_LABEL = 32
MOST_LABEL_WORDS = 4


def plain(text: str) -> str:
    """In lower case, without accents and punctuation: `Kilométrage :` is `kilometrage`."""
    bare = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    bare = "".join(letter for letter in bare if not unicodedata.combining(letter))
    return _NOT_WORD.sub(" ", bare.lower()).strip()


def words_of_token(token: str) -> str:
    """`vehicleMileage`, `vehicle-mileage` and `vehicle_mileage` are `vehicle mileage`."""
    return plain(_CAMEL.sub(" ", token))


_BY_LABEL = {plain(label): each for each in FIELDS.values() for label in each.labels if label}
_BY_SAID = {said: each for each in FIELDS.values() for said in each.said}
# The `body` of an element named so is rather that of a text than that of a car.
_UNNAMED = frozenset({"body", "about", "details", "overview", "web", "exterior", "miles"})
_BY_NAME = {plain(each.name.replace("_", " ")): each for each in FIELDS.values()}
# Names in classes that are no label of a visitor's.
_TOKENS = {
    "name": "title",
    "headline": "title",
    "heading": "title",
    "amount": "price",
    "desc": "description",
    "odo": "mileage",
    "stock": "sku",
    "trans": "transmission",
    "tel": "phone",
    "mail": "email",
    "bid": "current_bid",
}


def labelled(label: str) -> Field | None:
    """The field that a label names, as `Mileage:` or `Baujahr`."""
    return _BY_LABEL.get(plain(label))


def said_as(path: str) -> Field | None:
    """The field of a path in structured data, as `offers/price`."""
    return _BY_SAID.get(path)


def tokened(token: str) -> Field | None:
    """The field that a class, an id or a `data-` attribute names, as `vehicle-mileage`."""
    words = words_of_token(token)
    for phrase in (words, *_tails(words)):
        if phrase in _UNNAMED:
            return None
        found = _BY_NAME.get(phrase) or _BY_LABEL.get(phrase)
        if found is None and phrase in _TOKENS:
            found = FIELDS[_TOKENS[phrase]]
        if found is not None:
            return found
    return None


_SAYS_NOTHING = frozenset(
    "value val text txt field box main inner outer wrap wrapper container block cell data content info "
    "section row col line span div js x".split()
)


def _tails(words: str) -> list[str]:
    """`vehicle mileage value` is about `mileage`: its last words, without those that say nothing."""
    parts = [each for each in words.split() if each not in _SAYS_NOTHING]
    return [" ".join(parts[-2:]), parts[-1]] if parts else []


def field_named(name: str) -> Field:
    """A field by its name; one that is not known is text."""
    return FIELDS.get(name) or Field(name, "text")


def name_of_label(label: str) -> str:
    """The name of a field that nobody has thought of: `Top Speed` is `top_speed`."""
    return plain(label).replace("#", " ").strip().replace(" ", "_")
