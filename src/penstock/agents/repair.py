"""Self-repair: whether what was learned after a redesign may take the schema's place without a person."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.agents.extract import extract
from penstock.agents.learn.learn import Sample
from penstock.agents.learn.reading import is_same
from penstock.agents.learn.vocabulary import field_named
from penstock.agents.proposals import made_about
from penstock.agents.schema import Candidate, Proposal, SiteSchema, with_candidate
from penstock.agents.validate import validate
from penstock.counting import count

# Beside the fields of an item, in its record.
ABOUT = "extracted"
NO_FIELDS = frozenset({"url", ABOUT, "deleted"})


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far records may differ for a repair without a person; shares of the values that were compared.

    `max_removed` and `max_failed` are shares of records and pages, `least_score` is the validator's on pages
    that nothing was learned from, `min_records` is how many records the replay must have compared.
    """

    max_changed: float = 0.02
    max_lost: float = 0.02
    max_removed: float = 0.0
    max_failed: float = 0.02
    least_score: float = 0.8
    min_records: int = 10


class Shadow(msgspec.Struct, frozen=True):
    """Both schemas on pages as they are now: the values that each finds, compared with records."""

    pages: int = 0
    old_values: int = 0
    new_values: int = 0
    as_recorded: int = 0
    otherwise: int = 0
    score: float = 0.0


def shadowed(
    schema: SiteSchema, pages: Sequence[Sample], records: Mapping[str, Mapping[str, Any]], at: str
) -> Shadow:
    """Extract these pages by the schema and, beside it, by its candidate."""
    new = with_candidate(schema)
    if new is None:
        return Shadow()
    figures = dict.fromkeys(("old_values", "new_values", "as_recorded", "otherwise"), 0)
    for page in pages:
        before, after = _values(schema, page), _values(new, page)
        figures["old_values"] += len(before)
        figures["new_values"] += len(after)
        known = records.get(page.url, {})
        for name, value in after.items():
            recorded = known.get(name)
            if recorded is not None:
                is_equal = _is_equal(name, value, recorded)
                figures["as_recorded" if is_equal else "otherwise"] += 1
    score = validate(new, pages, len(pages), at).score if pages else 0.0
    return Shadow(len(pages), **figures, score=score)


def _values(schema: SiteSchema, page: Sample) -> dict[str, Any]:
    found = extract(schema, page.url, page.html)
    if found is None:
        return {}
    values = found.data.items()
    return {name: each for name, each in values if each is not None and name not in found.disputed}


def _is_equal(name: str, value: Any, recorded: Any) -> bool:
    if isinstance(value, list) or isinstance(recorded, list):
        return bool(value == recorded)
    return bool(is_same(field_named(name), value, recorded))


def objections(limits: Limits | None, trial: Mapping[str, Any], shadow: Shadow) -> list[str]:
    """What keeps the candidate from taking the schema's place by itself; nothing where it may."""
    if limits is None:
        return ["no limits are set: params.repair of the steward"]
    if problem := trial.get("problem"):
        return [f"there is no replay to judge by: {problem}"]
    return [*_of_replay(limits, trial), *_of_shadow(limits, shadow)]


def _of_replay(limits: Limits, trial: Mapping[str, Any]) -> list[str]:
    records, values = _counts(trial, "records"), _counts(trial, "values")
    compared = records.get("same", 0) + records.get("changed", 0)
    known = sum(values.get(name, 0) for name in ("same", "changed", "lost"))
    found = []
    if trial.get("state") not in ("completed", "partial"):
        found.append(f"the replay is {trial.get('state')}")
    if compared < limits.min_records:
        found.append(
            f"the replay compared {count(compared, 'record')}, fewer than {limits.min_records}"
        )
    shares = (
        ("values changed", values.get("changed", 0), known, limits.max_changed),
        ("values lost", values.get("lost", 0), known, limits.max_lost),
        ("records removed", records.get("removed", 0), compared, limits.max_removed),
        ("pages failed", _number(trial, "failed"), _number(trial, "pages"), limits.max_failed),
    )
    found += [
        f"{what}: {part} of {whole}, more than {limit:.1%}"
        for what, part, whole, limit in shares
        if part and part > limit * whole
    ]
    return found


def _of_shadow(limits: Limits, shadow: Shadow) -> list[str]:
    found = []
    if not shadow.pages:
        return ["no page could be read beside the old schema"]
    if shadow.score < limits.least_score:
        found.append(
            f"it scores {shadow.score:.2f} on pages as they are now, less than {limits.least_score:g}"
        )
    known = shadow.as_recorded + shadow.otherwise
    if shadow.otherwise > limits.max_changed * known:
        found.append(f"on pages as they are now, {shadow.otherwise} of {known} values differ")
    if shadow.new_values < shadow.old_values:
        found.append(
            f"it finds {shadow.new_values} values, the schema that it replaces {shadow.old_values}"
        )
    return found


def _number(trial: Mapping[str, Any], name: str) -> int:
    return int(trial.get(name) or 0)


def _counts(trial: Mapping[str, Any], name: str) -> Mapping[str, int]:
    found = trial.get(name)
    return found if isinstance(found, dict) else {}


def redesign_proposal(
    schema: SiteSchema,
    candidate: Candidate,
    trial: Mapping[str, Any],
    shadow: Shadow,
    why: Sequence[str],
    at: str,
) -> Proposal:
    """What a person is asked, with the difference that the replay and the shadow have shown."""
    key = hashlib.sha256(f"redesign {schema.domain} {candidate.id}".encode()).hexdigest()[:8]
    names = ("replay", "of_run", "pages", "failed", "records", "values", "fields", "examples")
    proposal = Proposal(
        id=key,
        kind="redesign",
        name=f"{schema.domain} is built in another way",
        description=(
            "The site was learned again after its pages had changed. The new schema was tried on stored "
            "pages and beside the old one. Approve to use it; reject to keep the schema as it is."
        ),
        proposed_at=at,
        fields=tuple(candidate.change.get("schema_data", {}).get("available_fields", ())),
        justification={
            "objections": list(why),
            "trial": {name: trial[name] for name in names if name in trial},
            "shadow": msgspec.to_builtins(shadow),
        },
        priority=2,
        change={**candidate.change, "held_out": candidate.held_out},
    )
    return made_about(schema, proposal)
