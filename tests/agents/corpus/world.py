"""The items that the sites are about: their values, as a person would note them down."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

KINDS = ("vehicle", "part", "lot", "build", "company")
MAKES = {
    "Chevrolet": ("Camaro", "Corvette", "C10", "Nova"),
    "Ford": ("Mustang", "Bronco", "F-100", "Falcon"),
    "Porsche": ("911", "356", "914", "944"),
    "Toyota": ("Land Cruiser", "Supra", "Celica"),
    "Mercedes-Benz": ("280 SL", "190 E", "300 TD"),
    "Datsun": ("240Z", "510", "620"),
}
ENGINES = ("327 V8", "2.7L flat six", "4.0L inline six", "5.7L LS1", "2.4L inline six", "302 V8")
GEARBOXES = ("4-speed manual", "5-speed manual", "automatic", "Tremec T56", "Turbo 400")
COLORS = ("Hugger Orange", "Guards Red", "Silver", "Lime Green", "Navy Blue", "Black", "Ivory")
INTERIORS = ("Black vinyl", "Tan leather", "Red leather", "Houndstooth")
CITIES = (
    "Reno, NV",
    "Austin, TX",
    "Portland, OR",
    "Tucson, AZ",
    "Boise, ID",
    "Salem, MA",
    "Denver, CO",
)
PARTS = (
    "Brake Caliper",
    "Fuel Pump",
    "Coilover Kit",
    "Headlight Bezel",
    "Steering Wheel",
    "Radiator",
    "Clutch",
)
BRANDS = ("Brembo", "Holley", "Bilstein", "Hella", "Nardi", "Griffin", "Sachs")
CATEGORIES = ("Brakes", "Fuel", "Suspension", "Lighting", "Interior", "Cooling", "Drivetrain")
MATERIALS = ("Steel", "Aluminium", "Billet", "Carbon fibre", "Brass")
TRADES = ("Upholstery", "Paint", "Machining", "Restoration", "Wiring", "Chrome plating")
NAMES = (
    "Acorn",
    "Blue Ridge",
    "Copper",
    "Delta",
    "Eastern",
    "Foundry",
    "Granite",
    "Harbor",
    "Ironwood",
    "Juniper",
)
SENTENCES = (
    "This one spent most of its life in a dry garage.",
    "The work was done by hand over two winters.",
    "It starts at once and runs without a fault.",
    "Records go back to the first owner.",
    "Small marks are visible in the photographs.",
    "It was last shown in spring and won its class.",
    "Every seal and bushing was replaced on the way.",
    "The finish has aged well and was never covered.",
    "We are glad to answer questions about it.",
    "Shipping can be arranged to most places.",
)
VIN_SIGNS = "ABCDEFGHJKLMNPRSTUVWXYZ0123456789"
# Fields that not every item has.
OPTIONAL = {
    "vehicle": ("mileage", "vin", "interior", "location"),
    "part": ("material", "weight", "category"),
    "lot": ("current_bid", "seller", "location"),
    "build": ("interior", "wheels", "horsepower"),
    "company": ("email", "website", "founded"),
}


@dataclass
class Item:
    """One thing: its number and slug, and the true values of its fields."""

    number: int
    slug: str
    truth: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return str(self.truth["title"])


def items_of(kind: str, count: int, chance: random.Random, currency: str) -> list[Item]:
    makers = {
        "vehicle": _vehicle,
        "part": _part,
        "lot": _lot,
        "build": _build,
        "company": _company,
    }
    found: list[Item] = []
    for at in range(count):
        truth = makers[kind](chance, at)
        for name in OPTIONAL[kind]:
            if chance.random() < 0.3:
                truth.pop(name, None)
        if "price" in truth:
            truth["currency"] = currency
        truth["description"] = " ".join(chance.sample(SENTENCES, chance.randint(3, 6)))
        number = 1000 + at * 7 + chance.randint(0, 6)
        slug = "-".join(str(truth["title"]).lower().replace("/", " ").replace("&", " ").split())
        truth["pictures"] = chance.randint(2, 5)
        found.append(Item(number, f"{slug}-{number}", truth))
    return found


def _car(chance: random.Random) -> dict[str, Any]:
    make = chance.choice(sorted(MAKES))
    return {
        "year": chance.randint(1955, 1998),
        "make": make,
        "model": chance.choice(MAKES[make]),
        "engine": chance.choice(ENGINES),
        "transmission": chance.choice(GEARBOXES),
        "color": chance.choice(COLORS),
        "interior": chance.choice(INTERIORS),
    }


def _vehicle(chance: random.Random, at: int) -> dict[str, Any]:
    car = _car(chance)
    vin = "".join(chance.choice(VIN_SIGNS) for _ in range(16)) + str(at % 10)
    return {
        "title": f"{car['year']} {car['make']} {car['model']}",
        "price": float(chance.randint(80, 1900) * 100),
        **car,
        "mileage": chance.randint(900, 180_000),
        "vin": vin,
        "sku": f"{chance.choice('ABCK')}{chance.randint(100, 999)}{at}",
        "location": chance.choice(CITIES),
    }


def _part(chance: random.Random, at: int) -> dict[str, Any]:
    which = chance.randrange(len(PARTS))
    brand = chance.choice(BRANDS)
    return {
        "title": f"{brand} {PARTS[which]} {chance.choice('XRSTG')}{chance.randint(10, 99)}",
        "price": round(chance.uniform(12, 1900), 2),
        "sku": f"{brand[:3].upper()}-{chance.randint(1000, 9999)}-{at}",
        "make": brand,
        "category": CATEGORIES[which],
        "condition": chance.choice(("New", "Used", "Rebuilt")),
        "material": chance.choice(MATERIALS),
        "weight": f"{chance.randint(1, 40)} lb",
    }


def _lot(chance: random.Random, at: int) -> dict[str, Any]:
    car = _car(chance)
    low = chance.randint(10, 200)
    shape = chance.choice(("Coupe", "Roadster", "Sedan"))
    return {
        "title": f"{car['year']} {car['make']} {car['model']} {shape}",
        "lot": str(100 + at),
        "estimate": f"${low},000 - ${low + chance.randint(2, 30)},000",
        "current_bid": float(chance.randint(5, 150) * 500),
        "date": f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
        "condition": chance.choice(("Restored", "Original", "Project", "Driver")),
        "seller": f"{chance.choice(NAMES)} Collection",
        "location": chance.choice(CITIES),
    }


def _build(chance: random.Random, at: int) -> dict[str, Any]:
    car = _car(chance)
    return {
        "title": f"{car['make']} {car['model']} {chance.choice(NAMES)}",
        **car,
        "wheels": f"{chance.randint(15, 20)} inch {chance.choice(('forged', 'steel', 'wire'))}",
        "horsepower": f"{chance.randint(18, 80) * 10} hp",
    }


def _company(chance: random.Random, at: int) -> dict[str, Any]:
    name = (
        f"{chance.choice(NAMES)} {chance.choice(TRADES)} {chance.choice(('Works', 'Co', 'Shop'))}"
    )
    slug = name.lower().replace(" ", "")
    digits = f"{chance.randint(201, 989)}{chance.randint(200, 999)}{chance.randint(1000, 9999)}"
    return {
        "title": f"{name} {at + 1}",
        "phone": digits,
        "email": f"info@{slug}{at}.example",
        "address": f"{chance.randint(1, 990)} {chance.choice(NAMES)} Street, {chance.choice(CITIES)}",
        "website": f"https://www.{slug}{at}.example/",
        "category": chance.choice(TRADES),
        "founded": str(chance.randint(1950, 2020)),
    }
