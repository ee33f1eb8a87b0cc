"""Numbers of companies in the registers of their countries."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from penstock.builder.normalize.text import clean

_BETWEEN = re.compile(r"[\s./-]+")
_ANY = re.compile(r"[A-Z]{0,4}\d[A-Z0-9]{3,19}")
_PATTERNS = {
    "US": re.compile(r"\d{9}"),
    "GB": re.compile(r"(?:[A-Z]{2}\d{6}|\d{8})"),
    "DE": re.compile(r"(?:HR[AB]\d{1,6}[A-Z]{0,2}|DE\d{9})"),
}


def legal_id(value: Any, of_country: str | None) -> str | None:
    """The number without separators; None if the country's rules say that it can't be one."""
    text = clean(value, 60)
    if text is None:
        return None
    bare = _BETWEEN.sub("", text.upper()).removesuffix(".0")
    if of_country == "FR":
        return _siren(bare)
    pattern = _PATTERNS.get(of_country or "", _ANY)
    return bare if pattern.fullmatch(bare) else None


def _siren(bare: str) -> str | None:
    """The nine digits of a French company; the fourteen of an establishment begin with them."""
    if not bare.isdigit() or len(bare) not in (9, 14):
        return None
    return bare[:9] if has_check_digit(bare[:9]) else None


def has_check_digit(digits: str) -> bool:
    """Whether the last digit is the one that the others ask for (Luhn)."""
    doubled: Callable[[int], int] = lambda digit: sum(divmod(2 * digit, 10))  # noqa: E731
    found = (int(each) for each in reversed(digits))
    return sum(doubled(each) if at % 2 else each for at, each in enumerate(found)) % 10 == 0
