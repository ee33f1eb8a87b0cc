"""How a site writes values and calls fields."""

from __future__ import annotations

from typing import Any

LABELS = {
    "en": {
        "price": "Price", "sku": "Stock #", "vin": "VIN", "color": "Exterior", "lot": "Lot",
        "current_bid": "Current bid", "date": "Auction date", "make": "Make", "email": "E-mail",
    },
    "de": {
        "price": "Preis", "year": "Baujahr", "make": "Marke", "model": "Modell", "engine": "Motor",
        "transmission": "Getriebe", "color": "Farbe", "interior": "Innenausstattung",
        "mileage": "Laufleistung", "vin": "Fahrgestellnummer", "sku": "Artikelnummer",
        "location": "Standort", "category": "Kategorie", "condition": "Zustand", "material": "Werkstoff",
        "weight": "Gewicht", "lot": "Losnummer", "estimate": "Schätzpreis",
        "current_bid": "Aktuelles Gebot", "date": "Auktionsdatum", "seller": "Verkäufer",
        "wheels": "Räder", "horsepower": "Leistung", "phone": "Telefon", "email": "E-Mail",
        "address": "Anschrift", "website": "Webseite", "founded": "Gegründet",
        "description": "Beschreibung",
    },
    "fr": {
        "price": "Prix", "year": "Année", "make": "Marque", "model": "Modèle", "engine": "Moteur",
        "transmission": "Boîte de vitesses", "color": "Couleur", "interior": "Intérieur",
        "mileage": "Kilométrage", "vin": "Numéro de châssis", "sku": "Référence",
        "location": "Localisation", "category": "Catégorie", "condition": "État", "material": "Matière",
        "weight": "Poids", "lot": "Numéro de lot", "estimate": "Estimation",
        "current_bid": "Enchère actuelle", "date": "Date de vente", "seller": "Vendeur",
        "wheels": "Roues", "horsepower": "Puissance", "phone": "Téléphone", "email": "Courriel",
        "address": "Adresse", "website": "Site web", "founded": "Fondée", "description": "Description",
    },
}  # fmt: skip
SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£"}
MONTHS = (
    "January February March April May June July August September October November December".split()
)


def label_of(name: str, language: str) -> str:
    return LABELS[language].get(name) or name.replace("_", " ").capitalize()


def text_of(name: str, value: Any, *, euro: bool, currency: str) -> str:
    """A value as a visitor reads it."""
    if name in ("price", "current_bid"):
        return money(float(value), euro=euro, currency=currency)
    if name == "mileage":
        return f"{number(value, euro=euro)} {'km' if euro else 'mi'}"
    if name == "phone":
        return f"({value[:3]}) {value[3:6]}-{value[6:]}"
    if name == "date":
        year, month, day = value.split("-")
        return f"{day}.{month}.{year}" if euro else f"{MONTHS[int(month) - 1]} {int(day)}, {year}"
    return str(value)


def number(value: float, *, euro: bool) -> str:
    text = f"{int(value):,}"
    return text.replace(",", ".") if euro else text


def money(value: float, *, euro: bool, currency: str) -> str:
    cents = f"{value:.2f}".split(".")[1]
    if euro:
        tail = f",{cents}" if cents != "00" else ""
        return f"{number(value, euro=True)}{tail} {SYMBOLS[currency]}"
    tail = f".{cents}" if cents != "00" else ""
    return f"{SYMBOLS[currency]}{number(value, euro=False)}{tail}"
