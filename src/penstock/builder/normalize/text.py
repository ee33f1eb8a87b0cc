"""Text of one line, without what nobody sees and what says nothing."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

LONGEST = 500
MOST_FOREIGN = 1_000
# Control characters, soft hyphens, zero-width characters, and those that turn the direction of writing.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]"
)
_PLACEHOLDERS = frozenset(
    "- -- --- . ? n/a n.a. na nan nil none null unknown undefined tbd todo xxx inconnu unbekannt "
    "not available no data #n/a #value! #ref!".split()
) | {"not available", "no data", "non renseigné", "keine angabe"}


def clean(value: Any, longest: int = LONGEST) -> str | None:
    """The text in NFC on one line, at most so long; None for nothing, for placeholders, and for lists.

    A longer text is cut before it is looked at: no honest value is that long.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)[: longest * 4]
    if not text.isascii():
        # To put marks into their order takes time that grows with the square of their number.
        text = unicodedata.normalize("NFC", text[:MOST_FOREIGN])
    text = _UNSEEN.sub("", text)
    text = " ".join(text.split())[:longest].strip()
    if not text or text.casefold() in _PLACEHOLDERS:
        return None
    return text


def plain(text: str) -> str:
    """The text for comparing: case, accents and wide forms folded; ß is ss, ø is o."""
    folded = unicodedata.normalize("NFKD", text.translate(_LETTERS)).casefold()
    return "".join(char for char in folded if not unicodedata.combining(char))


_LETTERS = str.maketrans(
    {
        "ß": "ss",
        "ẞ": "SS",
        "ø": "o",
        "Ø": "O",
        "æ": "ae",
        "Æ": "AE",
        "œ": "oe",
        "Œ": "OE",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
    }
)
