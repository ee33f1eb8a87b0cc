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
# A site that is read so well needs no dear model.
WELL = 0.95


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
    """The models that may be asked now, in their order."""
    uses = before.model_uses if before is not None else ()
    first = 1 if _is_read_well(before) and len(params.tiers) > 1 else 0
    return [
        tier
        for tier in params.tiers[first:]
        if _lately(uses, tier.model, fingerprint, now) < params.per_week
    ]


def _is_read_well(schema: SiteSchema | None) -> bool:
    return schema is not None and schema.validation is not None and schema.validation.score > WELL


def _lately(uses: Sequence[ModelUse], model: str, fingerprint: str, now: float) -> int:
    return sum(
        each.model == model
        and each.fingerprint == fingerprint
        and (age := age_s(each.at, now)) is not None
        and age < WEEK_S
        for each in uses
    )
