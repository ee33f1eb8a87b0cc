"""Figures of a whole dataset: completeness, validity, duplicates, scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from penstock.builder.company import FIELD_NAMES, Company
from penstock.builder.matching import match
from penstock.builder.quality.checks import ISSUES, check, has_asked, is_resolved
from penstock.builder.quality.score import score

BUCKETS = 10


class FieldQuality(msgspec.Struct, frozen=True):
    """Of one field, in percent of all companies: how many have it, and how many have it without an issue."""

    complete_pct: float
    valid_pct: float


class QualitySummary(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset in figures. Shares are in percent; None where there is nothing to take a share of."""

    companies: int
    # Rows of all lists that the companies were made of; 0 if that is not known.
    rows: int
    quality_score: float | None
    # How many companies fall into each tenth of the scores, from the lowest.
    scores: list[int]
    fields: dict[str, FieldQuality]
    issues: dict[str, int]
    # Companies beyond the first of each that look like one: what matching finds in the dataset itself.
    duplicates: int
    dup_pct: float | None
    # Of the companies with a website, those whose website is one.
    url_valid_pct: float | None
    # Of companies that have a domain, or had one that was asked about: those whose domain the DNS knows.
    domain_resolved_pct: float | None
    # Of all companies with an e-mail address, those whose address may be theirs.
    email_plausible_pct: float | None


def summarise(companies: Sequence[Company], rows: int = 0) -> QualitySummary:
    """The figures of a dataset. Scores and issues that companies have already are believed."""
    issues = [_issues(company) for company in companies]
    scores = [
        float(company["quality_score"])
        if company.get("quality_score") is not None
        else score(company, found)
        for company, found in zip(companies, issues, strict=True)
    ]
    duplicates = len(companies) - len(match(companies))
    counts = Counter(issue for found in issues for issue in dict.fromkeys(found))
    return QualitySummary(
        companies=len(companies),
        rows=rows,
        quality_score=round(sum(scores) / len(scores), 2) if scores else None,
        scores=_buckets(scores),
        fields=_fields(companies, issues),
        issues={issue: counts[issue] for issue in ISSUES if counts[issue]},
        duplicates=duplicates,
        dup_pct=pct(duplicates, len(companies)),
        url_valid_pct=_share(companies, issues, "website", "website_invalid"),
        domain_resolved_pct=_resolved_pct(companies),
        email_plausible_pct=_share(
            companies, issues, "email", "email_invalid", "email_implausible"
        ),
    )


def _issues(company: Company) -> list[str]:
    known = company.get("issues")
    return known if isinstance(known, list) else check(company)


def pct(part: int, whole: int) -> float | None:
    return round(100.0 * part / whole, 2) if whole else None


def _buckets(scores: Sequence[float]) -> list[int]:
    counts = Counter(min(int(value * BUCKETS / 100), BUCKETS - 1) for value in scores)
    return [counts[at] for at in range(BUCKETS)]


def _fields(
    companies: Sequence[Company], issues: Sequence[Sequence[str]]
) -> dict[str, FieldQuality]:
    about = {issue: field for issue, (field, _) in ISSUES.items()}
    made = {}
    for field in (name for name in FIELD_NAMES if name not in ("id", "quality_score", "issues")):
        has = [company.get(field) not in (None, "", []) for company in companies]
        well = sum(
            is_there and field not in {about.get(issue) for issue in found}
            for is_there, found in zip(has, issues, strict=True)
        )
        made[field] = FieldQuality(pct(sum(has), len(has)) or 0.0, pct(well, len(has)) or 0.0)
    return made


def _share(
    companies: Sequence[Company], issues: Sequence[Sequence[str]], field: str, *bad: str
) -> float | None:
    of_those = [
        found for company, found in zip(companies, issues, strict=True) if company.get(field)
    ]
    return pct(sum(not set(bad) & set(found) for found in of_those), len(of_those))


def _resolved_pct(companies: Sequence[Company]) -> float | None:
    asked = [company for company in companies if has_asked(company)]
    known = sum(bool(each.get("domain")) and is_resolved(each) is not False for each in asked)
    return pct(known, len(asked))
