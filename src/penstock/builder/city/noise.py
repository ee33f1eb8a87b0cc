"""Noise: how lists spell what is true."""

from __future__ import annotations

import random
from typing import Any

from penstock.builder.normalize.names import split_legal_form

_FORMS = {
    "LLC": ("LLC", "L.L.C.", "llc"),
    "Inc": ("Inc", "Inc.", "Incorporated"),
    "Corp": ("Corp", "Corporation"),
    "Co": ("Co.", "Company"),
}
_LONG = {
    "St": "Street",
    "Ave": "Avenue",
    "Blvd": "Boulevard",
    "Rd": "Road",
    "Dr": "Drive",
    "Ln": "Lane",
    "Pkwy": "Parkway",
}


def spelled_name(name: str, chance: random.Random, typos: float = 0.12) -> str:
    """A name as a list has it: another case, no or another form, `and` for `&`, perhaps a typing error."""
    bare, form = split_legal_form(name)
    style = chance.random()
    ending = "" if form is None or style < 0.25 else f" {chance.choice(_FORMS.get(form, (form,)))}"
    if chance.random() < 0.15:
        ending = ending.replace(" ", ", ", 1)
    bare = bare.replace("&", "and") if chance.random() < 0.4 else bare
    if chance.random() < typos:
        bare = typed_wrong(bare, chance)
    spelled = bare + ending
    case = chance.random()
    return spelled.upper() if case < 0.2 else spelled.lower() if case < 0.25 else spelled


def typed_wrong(text: str, chance: random.Random) -> str:
    """The text with one letter missing, doubled, swapped or another."""
    if len(text) < 5:
        return text
    at = chance.randrange(1, len(text) - 2)
    kind = chance.randrange(4)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at] + text[at:]
    if kind == 2:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + chance.choice("aeinorst") + text[at + 1 :]


def spelled_phone(phone: str, chance: random.Random) -> str:
    digits = phone[-10:]
    area, middle, last = digits[:3], digits[3:6], digits[6:]
    styles = (
        f"({area}) {middle}-{last}",
        f"{area}-{middle}-{last}",
        f"{area}.{middle}.{last}",
        f"+1 {area} {middle} {last}",
        digits,
    )
    return chance.choice(styles)


def spelled_street(street: str, chance: random.Random) -> str:
    words = street.split()
    if chance.random() < 0.4:
        words[-1] = _LONG.get(words[-1], words[-1])
    if chance.random() < 0.1:
        words += ["Suite", str(chance.randrange(1, 40))]
    if chance.random() < 0.04:
        words[1] = typed_wrong(words[1], chance)
    text = " ".join(words)
    return text.upper() if chance.random() < 0.15 else text


def spelled_postcode(postcode: str, chance: random.Random) -> str:
    """As a spreadsheet leaves it: without its zeros; or with four digits more."""
    if chance.random() < 0.1:
        return f"{postcode}-{chance.randrange(1000, 9999)}"
    return postcode.lstrip("0") if chance.random() < 0.5 else postcode


def spelled_website(website: str, chance: random.Random) -> str:
    bare = website.removeprefix("http://").rstrip("/")
    return chance.choice(
        (
            website,
            bare,
            f"http://{bare}",
            f"HTTP://{bare}/?utm_source=list",
            f"http://{bare}/index.html#top",
        )
    )


def one_line(truth: dict[str, Any], chance: random.Random) -> str:
    street = spelled_street(truth["street"], chance)
    return f"{street}, {truth['city']}, {truth['region']} {truth['postcode']}"


def sometimes(value: Any, share: float, chance: random.Random, instead: Any = "") -> Any:
    """The value in so many of all cases, else nothing as lists spell it."""
    if value is not None and chance.random() < share:
        return value
    return chance.choice((instead, instead, "N/A", "-")) if instead == "" else instead
