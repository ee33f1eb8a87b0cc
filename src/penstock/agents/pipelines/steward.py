"""The steward: decides by the record diff whether what was learned after a redesign is used, or asks."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.agents.pipelines.mapper import LEARNED, learnings, mapper
from penstock.agents.proposals import PROPOSED, carried, changed_by, propose
from penstock.agents.repair import Limits, objections, redesign_proposal, shadowed
from penstock.agents.schema import SiteSchema, with_fields
from penstock.agents.site import READS, Site, record
from penstock.counting import count
from penstock.jobs.failures import Permanent
from penstock.jobs.outcome import Skip
from penstock.pipeline.context import Context
from penstock.pipeline.pipeline import Pipeline

MEASURED, OVER = "trial.measured", "trial.over"


class StewardParams(msgspec.Struct, frozen=True):
    """`repair` has the limits within which no person is asked; `pages` are read for the shadow."""

    repair: dict[str, Any] | None = None
    pages: int = 12


steward = Pipeline("steward", retry="conservative")
steward.version = mapper.version
steward.reads = READS


@steward.step(unit="run", timeout="1h")
async def decide(ctx: Context) -> None:
    """Look at the difference that a trial has measured, and at pages as they are now."""
    site = Site(ctx)
    params = site.params(StewardParams)
    limits = _limits(params)
    trial = _trial(site)
    schema = await site.schema()
    candidate = None if schema is None else schema.candidate
    if schema is None or candidate is None or trial["about"].get("candidate") != candidate.id:
        raise Skip(f"{site.domain} has no candidate that this trial is about")
    pages = await site.pages(candidate.held_out[: params.pages])
    known = {url: await record(ctx, site.collection, url) or {} for url in pages}
    shadow = await ctx.in_thread(lambda: shadowed(schema, list(pages.values()), known, site.now()))
    why = objections(limits, trial, shadow)
    told = {"domain": site.domain, "trial": trial.get("replay"), "objections": why}
    if why:
        proposal = redesign_proposal(schema, candidate, trial, shadow, why, site.now())
        site.save(schema_proposals=propose(schema.schema_proposals, [proposal]), candidate=None)
        ctx.signal(PROPOSED, **told, proposal=proposal.id)
        ctx.note(
            f"a person decides about the schema of {site.domain}: {'; '.join(why)}; "
            f"proposal {proposal.id}"
        )
        return
    _adopt(site, schema, trial)
    ctx.signal(OVER, replay=trial.get("replay"))


def _limits(params: StewardParams) -> Limits | None:
    if params.repair is None:
        return None
    try:
        return msgspec.convert(params.repair, Limits, strict=False)
    except msgspec.ValidationError as error:
        raise Permanent(f"params.repair: {error}") from None


def _trial(site: Site) -> dict[str, Any]:
    signal = site.ctx.run.signal
    data = signal.data if signal is not None and signal.name == MEASURED else None
    about = data.get("about") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(about, dict):
        raise Skip(f"no trial to decide: a schedule starts the steward by the signal {MEASURED}")
    if about.get("domain") != site.domain:
        raise Skip(f"the trial is about {about.get('domain')}, not about {site.domain}")
    return data


def _adopt(site: Site, schema: SiteSchema, trial: dict[str, Any]) -> None:
    """The candidate becomes the schema, as a new version that the validator is to confirm."""
    candidate = schema.candidate
    if candidate is None:
        return
    change = {**candidate.change, "held_out": candidate.held_out}
    fields = changed_by(schema, change, site.now())
    fields |= {
        "cataloged_by": "system",
        "learned_for": f"the site was redesigned; replay {trial.get('replay')} is within the limits",
        "learnings": learnings(
            schema, site.now(), fields["version"], change.get("extraction_confidence")
        ),
    }
    after = with_fields(schema, fields)
    site.save(**fields, schema_proposals=carried(schema.schema_proposals, after, site.now()))
    records, values = trial.get("records", {}), trial.get("values", {})
    site.ctx.note(
        f"repaired {site.domain}: version {fields['version']}; of "
        f"{count(records.get('same', 0) + records.get('changed', 0), 'record')}, "
        f"{records.get('changed', 0)} would change, {values.get('gained', 0)} values were gained"
    )
    site.ctx.signal(LEARNED, domain=site.domain, version=fields["version"])
