"""Parts of addresses: streets, cities, postcodes and coordinates."""

from __future__ import annotations

import math
import re
from typing import Any

from penstock.builder.normalize.text import clean, plain

# The postcode of a country, and how its parts are put together again.
_POSTCODES = {
    "US": (re.compile(r"(\d{5})(?:[ -]?(\d{4}))?"), "-"),
    "CA": (re.compile(r"([A-Z]\d[A-Z]) ?(\d[A-Z]\d)"), " "),
    "GB": (re.compile(r"([A-Z]{1,2}\d[A-Z\d]?) ?(\d[A-Z]{2})"), " "),
    "NL": (re.compile(r"(\d{4}) ?([A-Z]{2})"), " "),
    "SE": (re.compile(r"(\d{3}) ?(\d{2})"), " "),
    "PL": (re.compile(r"(\d{2})-?(\d{3})"), "-"),
    "PT": (re.compile(r"(\d{4})-?(\d{3})"), "-"),
    **dict.fromkeys(("DE", "FR", "ES", "IT", "FI", "MX"), (re.compile(r"(\d{5})"), "")),
    **dict.fromkeys(("AT", "AU", "BE", "CH", "DK", "NO", "LU", "NZ"), (re.compile(r"(\d{4})"), "")),
}
_ANY_POSTCODE = re.compile(r"[A-Z0-9][A-Z0-9 -]{1,10}[A-Z0-9]")
# What a spreadsheet leaves of a code that begins with zero, by country: how many digits it had.
_DIGITS = {"US": 5, "DE": 5, "FR": 5, "ES": 5, "IT": 5}
# Words of streets that are written in several ways.
_STREET_WORDS = {
    "street": "st", "avenue": "ave", "boulevard": "blvd", "road": "rd", "drive": "dr", "lane": "ln",
    "court": "ct", "place": "pl", "square": "sq", "highway": "hwy", "parkway": "pkwy", "terrace": "ter",
    "north": "n", "south": "s", "east": "e", "west": "w", "suite": "ste", "apartment": "apt",
    "strasse": "str", "bd": "blvd", "av": "ave",
}  # fmt: skip
_STREET_UNIT = re.compile(
    r"\b(?:ste|suite|apt|apartment|unit|floor|fl|room|rm)\b.{0,40}$|#.{0,40}$"
)


def street(value: Any) -> str | None:
    text = clean(value, 200)
    return text if text and any(char.isalpha() for char in text) else None


def city(value: Any) -> str | None:
    """A city's name; what holds digits is no name."""
    text = clean(value, 100)
    if text is None or not any(char.isalpha() for char in text):
        return None
    return None if any(char.isdigit() for char in text) else text


def postcode(value: Any, of_country: str | None) -> str | None:
    """A postcode in the spelling of its country; None if it can't be one there.

    A number that lost its zeros in a spreadsheet gets them back: no shorter code exists in such a country.
    """
    text = clean(value, 20)
    if text is None:
        return None
    text = text.upper().removesuffix(".0")
    if text.isdigit() and len(text) == _DIGITS.get(of_country or "", 0) - 1:
        text = "0" + text
    if of_country not in _POSTCODES:
        return text if _ANY_POSTCODE.fullmatch(text) and any(c.isdigit() for c in text) else None
    pattern, between = _POSTCODES[of_country]
    found = pattern.fullmatch(text)
    return None if found is None else between.join(part for part in found.groups() if part)


def postcode_pattern(of_country: str) -> re.Pattern[str] | None:
    """What postcodes of a country look like, for finding one in a line; None if that is not known."""
    return _POSTCODES[of_country][0] if of_country in _POSTCODES else None


def coordinate(value: Any, most: float) -> float | None:
    """Degrees between -most and most; None for others, and for a text that is no number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > 40:
        return None
    try:
        degrees = float(value)
    except ValueError:
        return None
    return round(degrees, 6) if math.isfinite(degrees) and abs(degrees) <= most else None


def street_key(text: str) -> str:
    """What two spellings of one street have in common: no accents, short words, no suite."""
    bare = plain(text[:200]).replace("straße", "str")
    words = re.sub(r"[^a-z0-9# ]+", " ", bare).split()
    short = " ".join(_STREET_WORDS.get(word, word) for word in words)
    return _STREET_UNIT.sub("", short).strip()
