"""Tiers: which model is asked about a site, the dearest first, and when a cheaper one will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from penstock.agents.models.provider import Tier
from penstock.agents.moments import age_s
from penstock.agents.schema import ModelUse, SiteSchema
from penstock.jobs.failures import Permanent

WEEK_S = 7 * 86_400.0
# A site whose last validations all score more needs no dear model.
WELL, WELL_RUNS = 0.95, 10
# A cheaper model that was wrong so often in a row makes way for a dearer one.
MISMATCHES = 2


class ModelParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`model:` of the mapper's params. `tiers` are the models, the dearest first.

    A tier is asked `per_week` times about a site that has not changed. The model sees `pages` pages; what it
    proposes is tried on the others. `accept: verified` uses what was right, `proposal` asks a person.
    """

    url: str
    tiers: tuple[Tier, ...]
    api_key: str = ""
    per_week: int = 3
    pages: int = 3
    timeout: str = "60s"
    most_tokens: int = 1500
    below: float = 0.7
    accept: Literal["proposal", "verified"] = "proposal"


def model_params(found: Any) -> ModelParams | None:
    """The params of the mapper's model; None without one."""
    if found is None:
        return None
    try:
        params = msgspec.convert(found, ModelParams, strict=False)
    except msgspec.ValidationError as error:
        raise Permanent(f"params.model: {error}") from None
    if not params.tiers:
        raise Permanent("params.model: `tiers` needs at least one model: tiers: [{model: NAME}]")
    return params


def tiers_for(
    params: ModelParams, before: SiteSchema | None, fingerprint: str, now: float
) -> list[Tier]:
    """The models that may be asked now, in their order. One that is too dear for a budget makes way later."""
    uses = before.model_uses if before is not None else ()
    return [
        tier
        for tier in params.tiers[_level(params, before, fingerprint) :]
        if _lately(uses, tier.model, fingerprint, now) < params.per_week
    ]


def _level(params: ModelParams, before: SiteSchema | None, fingerprint: str) -> int:
    """The tier to begin with: that which was right last, a cheaper one for a site that is read well.

    One that was wrong again and again about the site as it is makes way for a dearer one.
    """
    if before is None:
        return 0
    names = [tier.model for tier in params.tiers]
    right = [use.model for use in before.model_uses if use.is_right and use.model in names]
    level = names.index(right[-1]) if right else 0
    level = min(level + _is_read_well(before), len(names) - 1)
    while level > 0 and _wrong_in_a_row(before, names[level], fingerprint) >= MISMATCHES:
        level -= 1
    return level


def _is_read_well(schema: SiteSchema) -> bool:
    return len(schema.scores) >= WELL_RUNS and min(schema.scores[-WELL_RUNS:]) > WELL


def _wrong_in_a_row(schema: SiteSchema, model: str, fingerprint: str) -> int:
    """How often this model was wrong last; that a person rejected what it proposed counts, too."""
    found = 0
    for use in reversed(schema.model_uses):
        if use.model == model and use.fingerprint == fingerprint:
            if use.is_right:
                break
            found += 1
    proposals = [each for each in schema.schema_proposals if each.kind == "model"]
    rejected = [each for each in proposals if each.status == "rejected"]
    return found + sum(bool(each.justification.get("model") == model) for each in rejected)


def _lately(uses: Sequence[ModelUse], model: str, fingerprint: str, now: float) -> int:
    return sum(
        each.model == model
        and each.fingerprint == fingerprint
        and (age := age_s(each.at, now)) is not None
        and age < WEEK_S
        for each in uses
    )
