"""The score of one company: how much of what matters is there and valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.builder.company import Company
from penstock.builder.quality.checks import ISSUES, check

# Points of each field; they add up to 100.
WEIGHTS = {
    "name": 15.0,
    "street": 8.0,
    "city": 7.0,
    "postcode": 7.0,
    "country": 3.0,
    "lat": 5.0,
    "phone": 15.0,
    "email": 15.0,
    "website": 10.0,
    "domain": 10.0,
    "category": 5.0,
}
# What is there but has an issue is worth this much of its points.
WITH_ISSUE = 0.25


def score(
    company: Company,
    issues: Iterable[str] | None = None,
    weights: Mapping[str, float] = WEIGHTS,
) -> float:
    """From 0 to 100: the points of the fields that are there, a quarter of them for those with an issue."""
    troubled = {
        ISSUES[issue][0]
        for issue in (check(company) if issues is None else issues)
        if issue in ISSUES
    }
    whole = sum(weights.values())
    if whole <= 0:
        return 0.0
    points = sum(
        weight * (WITH_ISSUE if field in troubled else 1.0)
        for field, weight in weights.items()
        if company.get(field) not in (None, "")
    )
    return round(100.0 * points / whole, 2)
