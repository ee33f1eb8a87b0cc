"""Countries by their codes and names, and states of the United States."""

from __future__ import annotations

from functools import cache
from typing import Any

from penstock.builder.normalize.text import clean, plain

# ISO 3166-1 in two letters: three letters, then names as lists of companies write them, without accents.
_COUNTRIES = """
AR arg|argentina
AT aut|austria|osterreich
AU aus|australia
BE bel|belgium|belgique|belgie
BG bgr|bulgaria
BR bra|brazil|brasil
CA can|canada
CH che|switzerland|schweiz|suisse|svizzera
CL chl|chile
CN chn|china
CO col|colombia
CZ cze|czechia|czech republic
DE deu|germany|deutschland|allemagne
DK dnk|denmark|danmark
EE est|estonia
ES esp|spain|espana|espagne
FI fin|finland|suomi
FR fra|france
GB gbr|united kingdom|uk|u.k|great britain|england|scotland|wales|northern ireland
GR grc|greece
HR hrv|croatia
HU hun|hungary
IE irl|ireland
IL isr|israel
IN ind|india
IS isl|iceland
IT ita|italy|italia|italie
JP jpn|japan
KR kor|south korea
LT ltu|lithuania
LU lux|luxembourg
LV lva|latvia
MX mex|mexico
NL nld|netherlands|the netherlands|nederland|holland
NO nor|norway|norge
NZ nzl|new zealand
PL pol|poland|polska
PT prt|portugal
RO rou|romania
SE swe|sweden|sverige
SG sgp|singapore
SI svn|slovenia
SK svk|slovakia
TR tur|turkey|turkiye
UA ukr|ukraine
US usa|united states|united states of america|u.s|u.s.a|etats-unis
ZA zaf|south africa
"""
_STATES = """
AL alabama|AK alaska|AZ arizona|AR arkansas|CA california|CO colorado|CT connecticut|DE delaware
DC district of columbia|FL florida|GA georgia|HI hawaii|ID idaho|IL illinois|IN indiana|IA iowa
KS kansas|KY kentucky|LA louisiana|ME maine|MD maryland|MA massachusetts|MI michigan|MN minnesota
MS mississippi|MO missouri|MT montana|NE nebraska|NV nevada|NH new hampshire|NJ new jersey
NM new mexico|NY new york|NC north carolina|ND north dakota|OH ohio|OK oklahoma|OR oregon
PA pennsylvania|RI rhode island|SC south carolina|SD south dakota|TN tennessee|TX texas|UT utah
VT vermont|VA virginia|WA washington|WV west virginia|WI wisconsin|WY wyoming
"""


@cache
def _known() -> dict[str, str]:
    pairs = (line.split(" ", 1) for line in _COUNTRIES.strip().split("\n"))
    return {
        spelling: code for code, names in pairs for spelling in (code.lower(), *names.split("|"))
    }


@cache
def _regions() -> frozenset[str]:
    from phonenumbers import SUPPORTED_REGIONS

    return frozenset(SUPPORTED_REGIONS)


def country(value: Any) -> str | None:
    """The code of two letters for a code or a name; None for what is neither."""
    text = clean(value, 60)
    if text is None:
        return None
    found = _known().get(plain(text).strip(" ."))
    if found is None and len(text) == 2 and text.upper() in _regions():
        return text.upper()
    return found


@cache
def _states() -> dict[str, str]:
    entries = (entry for line in _STATES.split("\n") for entry in line.split("|") if entry)
    pairs = (entry.split(" ", 1) for entry in entries)
    return {spelling: code for code, state in pairs for spelling in (code.lower(), state)}


def region(value: Any, of_country: str | None) -> str | None:
    """A state as its two letters where the country is the United States; any other as it is written."""
    text = clean(value, 100)
    if text is None or of_country != "US":
        return text
    return _states().get(plain(text).strip(" ."))
