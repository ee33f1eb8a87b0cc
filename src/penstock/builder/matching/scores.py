"""Scores: how likely two companies are the same.

Each trait that agrees or differs adds points, as in the model of Fellegi and Sunter: the logarithm (to
base 2) of how much more often that is seen between rows of one company than between rows of two. The sum
becomes a number from 0 to 1. Points and threshold were chosen on the development half of the labelled set of
`builder.city.labelled`; what they come to on the other half stands in docs/builder.md.
"""

from __future__ import annotations

import math

from rapidfuzz import fuzz
from rapidfuzz.distance import JaroWinkler

from penstock.builder.matching.traits import Traits

# Two rows are one company from this score on.
THRESHOLD = 0.7
# What a pair needs before anything is compared: most pairs are of two companies.
PRIOR = -9.0
SAME_LEGAL_ID, OTHER_LEGAL_ID = 16.0, -30.0
SAME_PHONE, OTHER_PHONE = 7.0, -2.0
SAME_DOMAIN, OTHER_DOMAIN = 6.0, -3.0
SAME_EMAIL = 5.0
SAME_POSTCODE, OTHER_POSTCODE = 2.5, -3.0
SAME_STREET, OTHER_STREET = 4.5, -3.5
SAME_CITY, OTHER_CITY = 1.0, -2.5
# From which likeness of names on, and the points for it.
# The most that two names with words of their own are alike.
OTHER_WORD = 0.6
MOST_WORD_PAIRS = 36
NAME_POINTS = ((0.97, 8.0), (0.9, 6.0), (0.82, 3.0), (0.72, 0.0), (0.55, -4.0), (0.0, -8.0))


def score(ours: Traits, theirs: Traits) -> float:
    """From 0 (surely two companies) to 1 (surely one)."""
    return probability(points(ours, theirs))


def probability(total: float) -> float:
    bounded = max(-60.0, min(60.0, total))
    return 1.0 / (1.0 + math.exp2(-bounded))


def points(ours: Traits, theirs: Traits) -> float:
    """The sum of what each trait says; a trait that one of them lacks says nothing."""
    return (
        PRIOR
        + _by_name(ours, theirs)
        + _equal(ours.legal_id, theirs.legal_id, SAME_LEGAL_ID, OTHER_LEGAL_ID)
        + _equal(ours.phone, theirs.phone, SAME_PHONE, OTHER_PHONE)
        + _by_web(ours, theirs)
        + _by_place(ours, theirs)
    )


def _equal(ours: str, theirs: str, same: float, other: float) -> float:
    if not ours or not theirs:
        return 0.0
    return same if ours == theirs else other


def name_likeness(ours: Traits, theirs: Traits) -> float:
    """How alike two names are: by their letters in any order of words, or by words that one of them lacks."""
    if ours.name == theirs.name:
        return 1.0
    whole = max(
        fuzz.token_sort_ratio(ours.name, theirs.name) / 100,
        JaroWinkler.similarity(ours.name, theirs.name, prefix_weight=0.05) - 0.06,
    )
    if has_other_words(ours, theirs):
        return min(float(whole), OTHER_WORD)
    shorter = min(len(ours.words), len(theirs.words))
    if shorter < 2:
        return float(whole)
    # All words of the shorter name are in the longer one: more may be a department, or another branch.
    within = fuzz.token_set_ratio(ours.name, theirs.name) / 100
    return float(max(whole, min(within, 0.85)))


def has_other_words(ours: Traits, theirs: Traits) -> bool:
    """Whether each name has a word that is like none of the other's: `Hale Roofing` and `Hale Holdings`."""
    mine = [word for word in ours.words if word not in theirs.words]
    yours = [word for word in theirs.words if word not in ours.words]
    if not mine or not yours or len(mine) * len(yours) > MOST_WORD_PAIRS:
        return False
    is_like = {(one, two) for one in mine for two in yours if fuzz.ratio(one, two) >= 70}
    joined = {"".join(mine), "".join(yours)}
    return not is_like and len(joined) > 1 and fuzz.ratio(*joined) < 70


def _by_name(ours: Traits, theirs: Traits) -> float:
    likeness = name_likeness(ours, theirs)
    return next(points for least, points in NAME_POINTS if likeness >= least)


def _by_web(ours: Traits, theirs: Traits) -> float:
    domain = _equal(ours.domain, theirs.domain, SAME_DOMAIN, OTHER_DOMAIN)
    email = SAME_EMAIL if ours.email and ours.email == theirs.email else 0.0
    # An address below the same domain says hardly more than the domain.
    return max(domain, email) if domain > 0 else domain + email


def _by_place(ours: Traits, theirs: Traits) -> float:
    if ours.country and theirs.country and ours.country != theirs.country:
        return OTHER_POSTCODE + OTHER_STREET
    code = _equal(ours.postcode, theirs.postcode, SAME_POSTCODE, OTHER_POSTCODE)
    city = _by_city(ours, theirs) if code <= 0 else 0.0
    return code + city + _by_street(ours, theirs)


def _by_city(ours: Traits, theirs: Traits) -> float:
    if not ours.city or not theirs.city:
        return 0.0
    return SAME_CITY if fuzz.ratio(ours.city, theirs.city) >= 85 else OTHER_CITY


def _by_street(ours: Traits, theirs: Traits) -> float:
    if not ours.street or not theirs.street:
        return 0.0
    if _number(ours.street) != _number(theirs.street):
        return OTHER_STREET
    return SAME_STREET if fuzz.ratio(ours.street, theirs.street) >= 82 else OTHER_STREET


def _number(street: str) -> str:
    return next((word for word in street.split() if word[0].isdigit()), "")
