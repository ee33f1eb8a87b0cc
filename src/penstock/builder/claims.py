"""Claims: what a source says about a field, and which of several claims a company keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.builder.company import EVIDENCE, Company

# How far a source is believed, from 0 to 1: a site speaks for its own company, others speak about it.
CONFIDENCE = {
    "json-ld": 0.9,
    "microdata": 0.88,
    "contact-link": 0.86,
    "maps": 0.8,
    "api": 0.75,
    "geocoder": 0.72,
    "dump": 0.7,
    "contact-text": 0.65,
    "opengraph": 0.6,
    "address": 0.6,
    "search": 0.5,
}
# What a source says if its kind is not known.
USUAL = 0.5
MOST_OTHERS = 5


class Claim(msgspec.Struct, frozen=True):
    """One value for one field, from one source."""

    field: str
    value: Any
    source: str
    confidence: float

    @classmethod
    def of(cls, field: str, value: Any, source: str, confidence: float | None = None) -> Claim:
        """A claim as far as its kind of source is believed: `json-ld`, or `dump:register.csv`."""
        kind = source.partition(":")[0]
        return cls(
            field, value, source, CONFIDENCE.get(kind, USUAL) if confidence is None else confidence
        )


def with_claims(company: Company, claims: Iterable[Claim]) -> Company:
    """The company with the strongest claim for each field, and what the others said as evidence.

    A claim replaces a value only if it is believed more than that one was: of equals, the first stays.
    """
    made = dict(company)
    evidence: dict[str, Any] = dict(made.get(EVIDENCE) or {})
    for claim in claims:
        if claim.value is None:
            continue
        evidence[claim.field] = _weighed(made, evidence.get(claim.field), claim)
    if evidence:
        made[EVIDENCE] = evidence
    return made


def _weighed(made: Company, known: dict[str, Any] | None, claim: Claim) -> dict[str, Any]:
    held = made.get(claim.field)
    said = {"source": claim.source, "confidence": claim.confidence}
    if held is None:
        made[claim.field] = claim.value
        return said
    before = known or {"source": "", "confidence": USUAL}
    if held == claim.value:
        return before if before["confidence"] >= claim.confidence else {**before, **said}
    if claim.confidence > before["confidence"]:
        made[claim.field] = claim.value
        return {**said, "others": _others(before, held)}
    return {**before, "others": _others(before, claim.value)}


def _others(before: dict[str, Any], value: Any) -> list[Any]:
    others = before.get("others", [])
    return others if value in others else [*others, value][:MOST_OTHERS]


def confidence_of(company: Company, field: str) -> float:
    """How far the value that a company has is believed; 0 if it has none."""
    if company.get(field) is None:
        return 0.0
    return float((company.get(EVIDENCE) or {}).get(field, {}).get("confidence", USUAL))
