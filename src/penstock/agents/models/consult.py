"""Consulting: whether a model is asked about what the mapper has learned, and what comes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.agents.learn.learn import Learned, confidence_of
from penstock.agents.models.propose import (
    Proposed,
    fingerprint_of,
    pages_to_ask_about,
    propose_fields,
)
from penstock.agents.models.provider import OpenAiCompatible
from penstock.agents.models.tiers import ModelParams, tiers_for
from penstock.agents.schema import (
    FieldSchema,
    ModelUse,
    PageType,
    Proposal,
    SchemaData,
    SiteSchema,
)
from penstock.agents.site import Site
from penstock.agents.visits import Visited
from penstock.counting import count

KEPT_USES = 100
# What every item has: asked for where nothing was found and nobody says what is wanted.
LEAST_FIELDS = ("title", "price")


class Consulted(msgspec.Struct, frozen=True):
    """The data of the schema with what a model has found, and what the mapper keeps of asking it."""

    schema_data: SchemaData
    proposed: Proposed
    fingerprint: str

    def uses(self, before: SiteSchema | None, at: str) -> list[ModelUse]:
        known = before.model_uses if before is not None else ()
        new = [
            ModelUse(at, each.model, self.fingerprint, each.cost, each.is_right)
            for each in self.proposed.asked
        ]
        return [*known, *new][-KEPT_USES:]


def wanted_of(fields: Sequence[str], learned: Learned, params: ModelParams) -> list[str]:
    """The fields to ask for: what is wanted and was not found, and what was disputed."""
    data = learned.schema.schema_data
    confidence = learned.schema.extraction_confidence or 0.0
    disputed = {name for each in learned.conflicts.values() for name in each}
    known = set(data.available_fields)
    if not known and not fields:
        return list(LEAST_FIELDS)
    unsure = set()
    if confidence < params.below:
        unsure = {
            name
            for page_type in data.page_types.values()
            for name, about in page_type.fields.items()
            if about.confidence < params.below and name != "images"
        }
    return sorted({*(name for name in fields if name not in known), *disputed, *unsure})


async def consult(
    site: Site,
    params: ModelParams,
    fields: Sequence[str],
    learned: Learned,
    visited: Visited,
    before: SiteSchema | None,
) -> Consulted | None:
    """Ask a model for what is missing; None if nothing is, or if no model may be asked now."""
    wanted = wanted_of(fields, learned, params)
    if not wanted:
        return None
    types = learned.schema.schema_data.page_types
    name = next((each for each, about in types.items() if about.fields), "")
    pattern = types[name].url_pattern if name else ""
    pages = await site.ctx.in_thread(lambda: pages_to_ask_about(visited.samples, pattern))
    fingerprint = fingerprint_of(pages)
    tiers = tiers_for(params, before, fingerprint, site.ctx.now())
    if not tiers:
        site.ctx.note(
            f"no model is asked about {site.domain}: each was, {count(params.per_week, 'time')} in a week, "
            "and the site has not changed"
        )
        return None
    provider = OpenAiCompatible(
        site.ctx,
        params.url,
        params.api_key,
        timeout=params.timeout,
        most_tokens=params.most_tokens,
    )
    proposed = await propose_fields(provider, tiers, wanted, pages, params.pages)
    site.ctx.note(_told(site.domain, wanted, proposed))
    data = _with_fields(
        learned.schema.schema_data, name, pattern or _pattern(visited, pages), proposed
    )
    return Consulted(data, proposed, fingerprint)


def _told(domain: str, wanted: Sequence[str], proposed: Proposed) -> str:
    found = ", ".join(sorted(proposed.fields)) or "nothing"
    refused = "; ".join(
        [*proposed.problems, *(f"{n}: {why}" for n, why in proposed.refused.items())]
    )
    told = f"models were asked about {domain} for {', '.join(wanted)}: {found} is right"
    return f"{told}, {proposed.cost:.4f} spent{f'; {refused}' if refused else ''}"[:2000]


def _pattern(visited: Visited, pages: Sequence[Any]) -> str:
    from penstock.agents.learn import addresses

    groups = addresses.patterns_of(visited.pages)
    urls = {page.url for page in pages}
    return next((each for each, members in groups.items() if urls & set(members)), "")


def _with_fields(data: SchemaData, name: str, pattern: str, proposed: Proposed) -> SchemaData:
    if not proposed.fields:
        return data
    name = name or "item"
    known = data.page_types.get(name, PageType(pattern))
    fields: Mapping[str, FieldSchema] = {**known.fields, **proposed.fields}
    page_types = {**data.page_types, name: PageType(known.url_pattern, dict(fields))}
    every = [each for page_type in page_types.values() for each in page_type.fields.items()]
    return SchemaData(
        page_types,
        tuple(dict.fromkeys(each for each, _ in every)),
        tuple(dict.fromkeys(each for each, about in every if about.required)),
    )


def question(domain: str, consulted: Consulted, version: int, at: str) -> Proposal:
    """What a person is asked: the selectors, what they find on pages the model has not seen, the cost."""
    found = consulted.proposed
    names = tuple(sorted(found.fields))
    key = hashlib.sha256(f"model {domain} {version} {names}".encode()).hexdigest()[:8]
    return Proposal(
        id=key,
        kind="model",
        name=f"{found.model} proposes {', '.join(names)}",
        description=(
            "A model has proposed selectors for fields that the mapper did not find. Each finds a value on "
            "pages that the model has not seen. Approve to use them; reject to leave these fields null."
        ),
        proposed_at=at,
        fields=names,
        justification={
            "model": found.model,
            "cost": round(found.cost, 6),
            "found": found.shown,
            "refused": found.refused,
            "version": version,
        },
        change={
            "schema_data": msgspec.to_builtins(consulted.schema_data),
            "extraction_confidence": confidence_of(consulted.schema_data.page_types),
        },
    )
