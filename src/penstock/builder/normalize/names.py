"""Names of companies: their legal form, and the key by which two spellings of one name are found."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from penstock.builder.normalize.text import clean, plain

LONGEST = 200
# One spelling of each legal form, and what is written for it. Compared without dots, blanks and case.
_FORMS = {
    "Inc": "inc incorporated",
    "Corp": "corp corporation",
    "Co": "co company",
    "LLC": "llc limitedliabilitycompany",
    "LLP": "llp",
    "LP": "lp",
    "Ltd": "ltd limited",
    "PLC": "plc",
    "PC": "pc",
    "PLLC": "pllc",
    "Pty Ltd": "ptyltd",
    "GmbH": "gmbh",
    "GmbH & Co. KG": "gmbhcokg gmbh&cokg gmbhandcokg",
    "AG": "ag aktiengesellschaft",
    "KG": "kg",
    "OHG": "ohg",
    "UG": "ug",
    "e.K.": "ek",
    "SA": "sa",
    "SAS": "sas",
    "SASU": "sasu",
    "SARL": "sarl",
    "EURL": "eurl",
    "SNC": "snc",
    "SCI": "sci",
    "BV": "bv",
    "NV": "nv",
    "SpA": "spa",
    "Srl": "srl",
    "SL": "sl",
    "AB": "ab",
    "Oy": "oy",
    "ApS": "aps",
    "A/S": "a/s",
    "AS": "as",
}
_BY_SPELLING = {
    spelling: form for form, spellings in _FORMS.items() for spelling in spellings.split()
}
# In France the form often stands before the name.
_BEFORE = frozenset("SAS SASU SARL EURL SNC SCI SA".split())
_MOST_WORDS = 4
_NO_LETTERS = re.compile(r"[^a-z0-9]+")
_ELISION = re.compile(r"(?<=[a-z0-9])['’`](?=[a-z0-9])")


def name(value: Any) -> str | None:
    """A name on one line; None if it holds neither letter nor digit. Case stays as it was written."""
    text = clean(value, LONGEST)
    if text is None:
        return None
    text = text.strip("\"'“”«» ,;")
    return text if any(char.isalnum() for char in text) else None


def split_legal_form(text: str) -> tuple[str, str | None]:
    """The name without its legal form, and the form in one spelling; a name that is only a form stays."""
    words = text.replace(",", " ").split()
    for taken in range(min(_MOST_WORDS, len(words) - 1), 0, -1):
        form = _BY_SPELLING.get(_spelling(words[-taken:]))
        if form is not None:
            return " ".join(words[:-taken]).rstrip(" &,-"), form
    first = _BY_SPELLING.get(_spelling(words[:1])) if len(words) > 1 else None
    if first in _BEFORE:
        return " ".join(words[1:]), first
    return text, None


def _spelling(words: list[str]) -> str:
    return "".join(words).replace(".", "").casefold()


@lru_cache(maxsize=65_536)
def name_key(text: str) -> str:
    """What two spellings of one name have in common: letters and digits, no accents, no legal form."""
    bare, _ = split_legal_form(text[:LONGEST])
    joined = _ELISION.sub("", plain(bare).replace("&", " and ").replace("+", " and "))
    return " ".join(word for word in _NO_LETTERS.sub(" ", joined).split() if word != "the")


def name_words(text: str) -> list[str]:
    """The words of the key that tell companies apart."""
    return [word for word in name_key(text).split() if word not in _COMMON]


_COMMON = frozenset("and of et und de la le les du der die das for group".split())
