"""The world of a city: its companies as they truly are, made from a seed."""

from __future__ import annotations

import random
from functools import cached_property
from typing import Any, Literal

import msgspec

from penstock.builder.city import words
from penstock.builder.company import Company
from penstock.builder.normalize.names import name_words, split_legal_form

SUFFIX = ".localhost"
# How a site tells what it tells.
Template = Literal["json-ld", "microdata", "contact page", "footer", "spelled out"]
TEMPLATES: tuple[Template, ...] = ("json-ld", "microdata", "contact page", "footer", "spelled out")
# What a site does when it is asked, and how many of a hundred do it.
SITES = {
    "well": 70,
    "slow": 4,
    "torn": 4,
    "throttled": 5,
    "overloaded": 5,
    "moved": 4,
    "cut off": 2,
    "silent": 1,
    "parked": 3,
    "gone": 2,
}
# Those of whose domain nobody can say that it is the company's.
LOST_SITES = frozenset({"parked", "gone", "silent"})
BRANCHES_PCT, HOLDINGS_PCT, RELATIVES_PCT, NAMESAKES_PCT, WITHOUT_SITE_PCT = 4, 3, 4, 8, 8


class Resident(msgspec.Struct, frozen=True, kw_only=True):
    """A company as it truly is, and what its site does."""

    number: int
    truth: dict[str, Any]
    # The host of its site; a branch has the one of its parent.
    host: str | None
    template: Template = "json-ld"
    site: str = "well"
    parent: int | None = None

    @property
    def has_own_site(self) -> bool:
        return self.host is not None and self.parent is None


class World(msgspec.Struct, frozen=True, dict=True):
    """All companies of a city. The same seed and number give the same ones."""

    seed: int = 7
    companies: int = 60

    @cached_property
    def residents(self) -> list[Resident]:
        return _Registry(self.seed, self.companies).all()

    @cached_property
    def truth(self) -> list[Company]:
        """The dataset that should come of it: a domain that is parked or gone is nobody's."""
        return [_expected(each) for each in self.residents]

    def chance(self, purpose: str) -> random.Random:
        """Chance of its own for one purpose, so that one part of the city does not change another."""
        return random.Random(f"{self.seed} {self.companies} {purpose}")


def _expected(resident: Resident) -> Company:
    truth = dict(resident.truth)
    if resident.site in LOST_SITES:
        truth.update(domain=None, website=None)
    return truth


class _Registry:
    def __init__(self, seed: int, companies: int) -> None:
        self._chance = random.Random(f"{seed} residents")
        self._companies = companies
        self._names: set[str] = set()
        self._labels: set[str] = set()
        self._made: list[Resident] = []
        self._phones: dict[str, list[int]] = {}

    def all(self) -> list[Resident]:
        while len(self._made) < self._companies:
            kind = self._chance.randrange(100)
            old = [each for each in self._made if each.has_own_site and each.site == "well"]
            if old and kind < BRANCHES_PCT:
                self._add_branch(self._chance.choice(old))
            elif old and kind < BRANCHES_PCT + HOLDINGS_PCT:
                self._add_holding(self._chance.choice(old))
            elif old and kind < BRANCHES_PCT + HOLDINGS_PCT + RELATIVES_PCT:
                self._add_relative(self._chance.choice(old))
            else:
                self._add_company()
        return self._made

    def _add_company(self) -> None:
        chance = self._chance
        bare, address = self._new_name(), self._address()
        if self._made and chance.randrange(100) < NAMESAKES_PCT:
            bare, _ = split_legal_form(chance.choice(self._made).truth["name"])
        host = None
        if chance.randrange(100) >= WITHOUT_SITE_PCT:
            host = self._free_label(bare, address["city"]) + SUFFIX
        site = chance.choices(list(SITES), list(SITES.values()))[0] if host else "well"
        truth = {**self._facts(bare), **address, **_contacts(host, chance, bare)}
        self._add(truth, host, template=chance.choice(TEMPLATES), site=site)

    def _free_label(self, bare: str, city: str) -> str:
        label = _label(bare, self._chance)
        if label in self._labels:
            label += "".join(name_words(city))
        while label in self._labels:
            label += str(self._chance.randrange(10))
        self._labels.add(label)
        return label

    def _add_branch(self, parent: Resident) -> None:
        """Another place of the same company: its own address, number and name of the town behind the name."""
        address = self._address()
        bare, _ = split_legal_form(parent.truth["name"])
        name = f"{bare} {address['city']}"
        if name in self._names or address["city"] == parent.truth["city"]:
            return self._add_company()
        self._names.add(name)
        truth = {
            **self._facts(name),
            **address,
            **{k: parent.truth[k] for k in ("domain", "website", "category")},
        }
        truth.update(email=None, linkedin=None, facebook=None)
        self._add(
            truth, parent.host, template=parent.template, site=parent.site, parent=parent.number
        )

    def _add_holding(self, child: Resident) -> None:
        """Another company behind the same door, without a site of its own."""
        bare = f"{child.truth['name'].split()[0]} Holdings"
        if bare in self._names:
            return self._add_company()
        self._names.add(bare)
        same = {
            part: child.truth[part]
            for part in ("street", "city", "postcode", "region", "country", "lat", "lon")
        }
        truth = {
            **self._facts(bare),
            **same,
            **_contacts(None, self._chance, bare),
        }
        truth.update(category="holding", phone=self._shared_phone(child))
        self._add(truth, None)

    def _shared_phone(self, child: Resident) -> str:
        phone: str = child.truth["phone"]
        return phone if self._chance.randrange(2) else self._phone(phone[2:5])

    def _add_relative(self, other: Resident) -> None:
        """A company of almost the same name in the same street, without a site of its own."""
        bare, _ = split_legal_form(other.truth["name"])
        name = f"{bare} {self._chance.choice(words.RELATIVES)}"
        if name in self._names:
            return self._add_company()
        self._names.add(name)
        number, _, street = other.truth["street"].partition(" ")
        same = {
            part: other.truth[part]
            for part in ("city", "postcode", "region", "country", "lat", "lon")
        }
        truth = {**self._facts(name), **same, "street": f"{int(number) + 2} {street}"}
        truth.update(
            _contacts(None, self._chance, name), phone=self._phone(other.truth["phone"][2:5])
        )
        self._add(truth, None)

    def _add(self, truth: dict[str, Any], host: str | None, **more: Any) -> None:
        self._made.append(Resident(number=len(self._made), truth=truth, host=host, **more))

    def _new_name(self) -> str:
        chance = self._chance
        while True:
            trade = chance.choice(words.TRADES)
            owner = chance.choice(words.OWNERS)
            first = chance.choice(
                [
                    owner,
                    owner,
                    f"{owner} & Sons",
                    chance.choice(words.FANCIES),
                    f"{owner} {chance.choice(words.OWNERS)}",
                ]
            )
            name = f"{first} {trade}"
            if name not in self._names:
                self._names.add(name)
                return name

    def _facts(self, bare: str) -> dict[str, Any]:
        chance = self._chance
        form = chance.choice(words.FORMS)
        return {
            "name": f"{bare} {form}" if form else bare,
            "legal_form": form,
            "legal_id": f"{chance.randrange(10, 99)}{chance.randrange(10**6, 10**7)}",
            "category": next((trade for trade in words.TRADES if trade in bare), "other").lower(),
            "opened": str(chance.randrange(1950, 2024)),
            "employees": chance.randrange(1, 250),
        }

    def _address(self) -> dict[str, Any]:
        chance = self._chance
        town = chance.choice(words.TOWNS)
        return {
            "street": f"{chance.randrange(1, 9999)} {chance.choice(words.STREETS)}",
            "city": town.name,
            "region": town.state,
            "postcode": f"{town.postcode}{chance.randrange(1, 99):02d}",
            "country": "US",
            "lat": round(town.lat + chance.uniform(-0.08, 0.08), 6),
            "lon": round(town.lon + chance.uniform(-0.08, 0.08), 6),
            "phone": self._phone(town.area),
        }

    def _phone(self, area: str) -> str:
        """A number that is nobody's (555-01xx); after a hundred of a town, those of the next town."""
        while True:
            left = self._phones.setdefault(area, self._chance.sample(range(100), 100))
            if left:
                return f"+1{area}55501{left.pop():02d}"
            area = self._chance.choice([each for each in _AREAS if self._phones.get(each) != []])


_MORE_AREAS = "201 203 205 206 207 208 210 212 213 215 219 224 225 228 231 239 240 248 251 252 253"
_AREAS = sorted({town.area for town in words.TOWNS} | set(_MORE_AREAS.split()))


def _label(bare: str, chance: random.Random) -> str:
    found = name_words(bare)
    style = chance.randrange(10)
    if style < 6:
        return "".join(found)
    if style < 9:
        return "-".join(found)
    return "".join(word[0] for word in found[:-1]) + found[-1] + str(chance.randrange(10, 99))


def _contacts(host: str | None, chance: random.Random, bare: str) -> dict[str, Any]:
    slug = "".join(name_words(bare))
    if host is None:
        free = f"{slug}{chance.randrange(10, 99)}@gmail.com" if chance.randrange(3) else None
        return {"domain": None, "website": None, "email": free, "linkedin": None, "facebook": None}
    box = chance.choice([*words.MAILBOXES, *words.MAILBOXES, chance.choice(words.FIRST_NAMES)])
    return {
        "domain": host,
        "website": f"http://{host}/",
        "email": f"{box}@{host}",
        "linkedin": f"https://www.linkedin.com/company/{slug}" if chance.randrange(3) else None,
        "facebook": f"https://www.facebook.com/{slug}" if chance.randrange(2) else None,
    }
