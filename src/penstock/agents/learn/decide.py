"""Deciding: of all evidence for a field, what is used. Where witnesses contradict each other, nothing is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.agents.learn.evidence import Evidence
from penstock.agents.learn.selectors import method_of
from penstock.agents.schema import FieldSchema

AGREES = 0.8
# From which agreement on one may stand in for the other.
STANDS_IN = 0.95
MOST_SELECTORS = 4
FEWEST_PAGES = 2
REQUIRED_FROM = 0.95
# So much more must be behind a claim that is contradicted.
MARGIN = 0.05


@dataclass
class Decided:
    """The fields of a page type, their values page by page, and where evidence was against evidence."""

    fields: dict[str, FieldSchema] = field(default_factory=dict)
    values: list[dict[str, Any]] = field(default_factory=list)
    conflicts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def decide(evidence: Iterable[Evidence], count: int) -> Decided:
    by_field: dict[str, list[Evidence]] = {}
    for each in evidence:
        by_field.setdefault(each.field.name, []).append(each)
    decided = Decided(values=[{} for _ in range(count)])
    for name, found in by_field.items():
        _decide(name, _usable(found), decided)
    return decided


def _usable(found: Sequence[Evidence]) -> list[Evidence]:
    """Mostly values of the kind; and nothing that stays the same while another varies."""
    kept = [each for each in found if each.present and each.valid >= 0.5]
    if any(each.varies for each in kept):
        kept = [each for each in kept if each.varies or not _is_contradicted(each, kept)]
    if found and found[0].field.name in SITE_WIDE:
        kept = [each for each in kept if each.varies]
    return sorted(kept, key=lambda each: (-each.trust * each.coverage, each.selector))


SITE_WIDE = frozenset({"phone", "email", "address", "website", "title", "description"})


def _is_contradicted(steady: Evidence, all_of_them: Sequence[Evidence]) -> bool:
    return any(
        each.varies and each.shared(steady) >= FEWEST_PAGES and each.agreement(steady) < AGREES
        for each in all_of_them
    )


def _decide(name: str, found: list[Evidence], decided: Decided) -> None:
    groups = [each for each in _groups(found) if _covered(each) >= FEWEST_PAGES]
    if not groups:
        return
    ranked = sorted(groups, key=_weight, reverse=True)
    best = ranked[0]
    against = [each for each in ranked[1:] if _contradicts(each, best)]
    if against and _weight(best) - _weight(against[0]) < MARGIN:
        decided.conflicts[name] = [_testimony(group) for group in (best, against[0])]
        return
    decided.fields[name] = _field(best, len(decided.values))
    for at, row in enumerate(decided.values):
        row[name] = next((e.values[at] for e in best if e.values[at] is not None), None)


def _groups(found: list[Evidence]) -> list[list[Evidence]]:
    groups: list[list[Evidence]] = []
    for each in found:
        for group in groups:
            first = group[0]
            if first.agreement(each) >= STANDS_IN and (first.shared(each) or _may_join(each)):
                group.append(each)
                break
        else:
            groups.append([each])
    return groups


def _covered(group: Sequence[Evidence]) -> int:
    """On how many pages any of them speaks."""
    return sum(
        any(value is not None for value in row)
        for row in zip(*(each.values for each in group), strict=True)
    )


def _may_join(each: Evidence) -> bool:
    """Whether it may speak for pages that nobody else speaks for."""
    return each.trust >= 0.9


def _contradicts(one: Sequence[Evidence], other: Sequence[Evidence]) -> bool:
    first, second = one[0], other[0]
    return first.shared(second) >= FEWEST_PAGES and first.agreement(second) < AGREES


def _weight(group: Sequence[Evidence]) -> float:
    """How likely it is that not all of them are wrong. Several selectors of one kind are one witness."""
    doubt = 1.0
    by_method: dict[str, float] = {}
    for each in group:
        method = method_of(each.selector)
        by_method[method] = max(by_method.get(method, 0.0), each.trust * each.coverage * each.valid)
    for certainty in by_method.values():
        doubt *= 1 - certainty
    return 1 - doubt


def _field(group: Sequence[Evidence], count: int) -> FieldSchema:
    chosen = list(dict.fromkeys(each.selector for each in group))[:MOST_SELECTORS]
    used = [each for each in group if each.selector in chosen]
    covered = _covered(used)
    confidence = 1.0
    for method in {method_of(each.selector) for each in used}:
        best = max(e.trust * e.valid for e in used if method_of(e.selector) == method)
        confidence *= 1 - best
    return FieldSchema(
        tuple(chosen),
        method_of(chosen[0]),  # type: ignore[arg-type]
        required=count >= 3 and covered >= REQUIRED_FROM * count,
        confidence=round(min(0.99, 1 - confidence), 3),
    )


def _testimony(group: Sequence[Evidence]) -> dict[str, Any]:
    values = [str(value)[:80] for value in group[0].values if value is not None]
    return {"selectors": [each.selector for each in group], "values": values[:3]}
