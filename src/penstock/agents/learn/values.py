"""Values: what a text must look like to be one of a kind. What is unclear is None."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any
from urllib.parse import urljoin, urlsplit

from penstock.agents.learn.vocabulary import Kind, plain

LONGEST = 300
LONGEST_TEXT = 20_000
OLDEST, NEWEST = 1880, 2100
_BLANKS = re.compile(r"\s+")
_NOTHING = frozenset(
    plain(each)
    for each in (
        "n/a", "na", "none", "unknown", "tbd", "tba", "call", "call for price", "price on request", "poa",
        "price upon request", "contact us", "not specified", "unbekannt", "inconnu", "keine angabe", "k. A.",
        "auf anfrage", "preis auf anfrage", "sur demande", "prix sur demande", "a consultar",
    )
)  # fmt: skip
_NUMBER = r"\d{1,3}(?:[.,'’\s]\d{3})+(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?"
_MONEY = re.compile(
    rf"(?P<before>US\$|C\$|A\$|[$€£¥]|[A-Z]{{3}}|Fr\.?)?\s?(?P<number>{_NUMBER})(?![\d%])\s?"
    r"(?P<after>[$€£¥]|[A-Z]{3}\b)?"
)
_CODES = frozenset(
    "USD EUR GBP CHF CAD AUD NZD JPY SEK NOK DKK PLN CZK HUF MXN BRL ZAR INR CNY".split()
)
# A dollar is not always one of the United States.
_SYMBOLS = {"€": "EUR", "£": "GBP", "US$": "USD", "C$": "CAD", "A$": "AUD"}
_COUNT = re.compile(
    rf"^(?P<number>{_NUMBER}|\d+)\s*(?P<unit>miles?|mi\.?|km|kms|kilom\w+|tsd\.? km)?$",
    re.IGNORECASE,
)
_VIN = re.compile(r"^[A-HJ-NPR-Z0-9]{17}$")
_EMAIL = re.compile(r"^[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}$")
_PHONE = re.compile(r"^\+?\(?\d[\d ()./-]{5,22}\d$")
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero", "february feb februar fevrier febrero",
            "march mar marz maerz mars marzo", "april apr avril abril", "may mai mayo",
            "june jun juni juin junio", "july jul juli juillet julio", "august aug aout agosto",
            "september sep sept septembre septiembre", "october oct oktober okt octobre octubre",
            "november nov novembre noviembre", "december dec dezember dez decembre diciembre",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip


def clean(text: str) -> str:
    """In one line, without blanks around it."""
    return _BLANKS.sub(" ", text).strip()


def shared_start(texts: Sequence[str]) -> str:
    """What all of them begin with."""
    first, last = min(texts), max(texts)
    for at, sign in enumerate(first):
        if at >= len(last) or last[at] != sign:
            return first[:at]
    return first


def is_nothing(text: str) -> bool:
    """Whether it only says that nothing is known."""
    said = plain(text)
    return said in _NOTHING or (not said and len(text) < 4)


def value_of(kind: Kind, raw: Any, base: str = "") -> Any:
    """The value of this kind that a text or a value of JSON is, or None."""
    if kind == "images":
        return None
    if isinstance(raw, bool) or raw is None:
        return None
    if isinstance(raw, int | float):
        raw = f"{raw:.2f}".rstrip("0").rstrip(".") if isinstance(raw, float) else str(raw)
    if not isinstance(raw, str):
        return None
    text = clean(raw)
    if not text or is_nothing(text):
        return None
    return _url(text, base) if kind == "url" else _READERS[kind](text)


def _text(text: str) -> str | None:
    return text if len(text) <= LONGEST else None


def _long(text: str) -> str | None:
    return text[:LONGEST_TEXT]


def number_of(text: str) -> float | None:
    """`1,234.50`, `1.234,50`, `1 234` and `1'234`. Three digits after the last mark are thousands."""
    bare = re.sub(r"[\s'’]", "", text)
    marks = [at for at, sign in enumerate(bare) if sign in ".,"]
    if marks:
        last = marks[-1]
        decimals = len(bare) - last - 1
        is_decimal = decimals in (1, 2) and bare.count(bare[last]) == 1
        whole = re.sub(r"[.,]", "", bare[:last] if is_decimal else bare)
        bare = f"{whole}.{bare[last + 1 :]}" if is_decimal else whole
    try:
        return float(bare)
    except ValueError:
        return None


def amounts(text: str) -> list[tuple[float, str, bool]]:
    """Every amount in a text: its number, its currency where that is sure, and whether it names any."""
    found = []
    for match in _MONEY.finditer(text):
        number = number_of(match["number"])
        marks = [mark for mark in (match["before"], match["after"]) if mark]
        marks = [mark for mark in marks if not mark.isalpha() or mark in _CODES or mark == "Fr"]
        code = next(
            (_SYMBOLS.get(mark) or mark for mark in marks if mark in _SYMBOLS or mark in _CODES), ""
        )
        if number is not None:
            found.append((number, code, bool(marks)))
    return found


def _money(text: str) -> float | None:
    if len(text) > 60:
        return None
    found = amounts(text)
    named = [each for each in found if each[2]] or found
    numbers = {each[0] for each in named}
    return numbers.pop() if len(numbers) == 1 else None


def _currency(text: str) -> str | None:
    if text in _CODES:
        return text
    codes = {code for _, code, _ in amounts(text) if code}
    return codes.pop() if len(codes) == 1 and len(text) <= 60 else None


def _count(text: str) -> int | None:
    match = _COUNT.match(text)
    number = number_of(match["number"]) if match else None
    return int(number) if number is not None and number == int(number) else None


def _year(text: str) -> int | None:
    head = re.match(r"^(\d{4})(?:-\d{2}(?:-\d{2})?)?$", text)
    return int(head[1]) if head and OLDEST <= int(head[1]) <= NEWEST else None


def _vin(text: str) -> str | None:
    bare = text.replace(" ", "").upper()
    return bare if _VIN.match(bare) and any(sign.isdigit() for sign in bare) else None


def _phone(text: str) -> str | None:
    text = text.removeprefix("tel:")
    if not _PHONE.match(text):
        return None
    digits = "".join(sign for sign in text if sign.isdigit())
    plus = "+" if text.startswith("+") else ""
    return plus + digits if 7 <= len(digits) <= 15 else None


def _email(text: str) -> str | None:
    bare = text.removeprefix("mailto:").partition("?")[0].lower()
    return bare if _EMAIL.match(bare) else None


def _date(text: str) -> str | None:
    """In ISO; `03/04/2026` may be either, and is None."""
    for read in (_iso, _dotted, _slashed, _worded):
        parts = read(text)
        if parts is not None:
            try:
                return date(*parts).isoformat()
            except ValueError:
                return None
    return None


def _iso(text: str) -> tuple[int, int, int] | None:
    match = re.match(r"^(\d{4})-(\d{2})-(\d{2})(?:[T ].*)?$", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _dotted(text: str) -> tuple[int, int, int] | None:
    match = re.match(r"^(\d{1,2})\.(\d{1,2})\.(\d{4})\b", text)
    return (int(match[3]), int(match[2]), int(match[1])) if match else None


def _slashed(text: str) -> tuple[int, int, int] | None:
    match = re.match(r"^(\d{1,2})/(\d{1,2})/(\d{4})\b", text)
    if not match:
        return None
    first, second, year = int(match[1]), int(match[2]), int(match[3])
    if first > 12:
        return year, second, first
    return (year, first, second) if second > 12 or first == second else None


def _worded(text: str) -> tuple[int, int, int] | None:
    words = plain(text).replace(" de ", " ").split()
    if len(words) < 3:
        return None
    for day, month, year in ((0, 1, 2), (1, 0, 2)):
        number = (
            words[day].removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
        )
        if (
            number.isdigit()
            and words[month] in _MONTHS
            and words[year].isdigit()
            and len(words[year]) == 4
        ):
            return int(words[year]), _MONTHS[words[month]], int(number)
    return None


def _url(text: str, base: str) -> str | None:
    try:
        parts = urlsplit(urljoin(base, text))
    except ValueError:
        return None
    return parts.geturl() if parts.scheme in ("http", "https") and "." in parts.netloc else None


_READERS: dict[Kind, Callable[[str], Any]] = {
    "text": _text,
    "long": _long,
    "money": _money,
    "currency": _currency,
    "count": _count,
    "year": _year,
    "vin": _vin,
    "phone": _phone,
    "email": _email,
    "date": _date,
}
