"""The mapper: learns how a site is built, and writes what it has learned as a new version of its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.agents.learn.learn import Learned, learn
from penstock.agents.models.consult import consult, question
from penstock.agents.models.tiers import model_params
from penstock.agents.moments import age_s, seconds_of
from penstock.agents.pollution import image_selectors
from penstock.agents.proposals import PROPOSED, carried, made_about, propose
from penstock.agents.schema import Candidate, Learning, Proposal, SiteSchema, with_fields
from penstock.agents.site import READS, SCHEMAS, Site, record
from penstock.agents.trust import duration_s
from penstock.agents.visits import Visited, visit
from penstock.counting import count
from penstock.jobs.failures import BadData
from penstock.jobs.outcome import Skip
from penstock.pipeline.context import Context
from penstock.pipeline.pipeline import Pipeline

LEARNED = "site.learned"
IMAGES = "images are to be refreshed"
REDESIGNED = "the site was redesigned"
# An alert has seen that pages lost elements which good ones had.
DRIFTED, TRIAL = "source.structure_drifted", "trial.wanted"
# A trial that has not ended after this is forgotten.
TRIED_S = 24 * 3600.0
# A schema that did not convince the validator is learned again, not more often than this.
AGAIN_AFTER_S = 20 * 3600.0
KEPT_LEARNINGS = 30
NIGHT_S = 12 * 3600.0
# Of a record: what is no field of its item.
NO_FIELDS = frozenset({"url", "extracted", "deleted"})


class MapperParams(msgspec.Struct, frozen=True):
    """`limit` is how many sites are learned within 12 hours, in all sources together.

    `fields` are wanted: where nothing is found for one, the `model` is asked, if there is one.
    """

    stale_after: str = "30d"
    limit: int = 30
    pages: int = 80
    force: bool = False
    force_image_refresh: bool = False
    fields: tuple[str, ...] = ()
    model: dict[str, Any] | None = None


mapper = Pipeline("mapper", retry="conservative")
mapper.version = "site agents 1"
mapper.reads = READS


@mapper.step(unit="run", timeout="1h")
async def learn_site(ctx: Context) -> None:
    """Learn the site, if its schema is stale or absent, or if somebody asks for it."""
    site = Site(ctx)
    params = _signalled(site, site.params(MapperParams))
    before = await site.schema()
    why = await _reason(site, before, params)
    visited = await visit(site, params.pages)
    if not visited.pages:
        raise BadData(f"no page of {site.domain} could be read", cause="nothing to learn from")
    known = await _known(site, visited) if before is not None else {}
    learned = await ctx.in_thread(
        lambda: learn(visited.samples, urls=visited.urls, known=known, flagged=_flagged(before))
    )
    if before is not None and why == REDESIGNED:
        save_candidate(site, before, learned, visited)
        return
    asked, more = await _ask_a_model(site, params, learned, visited, before)
    save_learned(site, before, learned, visited, why, asked, **more)


async def _ask_a_model(
    site: Site,
    params: MapperParams,
    learned: Learned,
    visited: Visited,
    before: SiteSchema | None,
) -> tuple[Proposal | None, dict[str, Any]]:
    """What a person is asked about what a model has found, and the fields of the schema that come of it."""
    model = model_params(params.model)
    if model is None:
        return None, {}
    consulted = await consult(site, model, params.fields, learned, visited, before)
    if consulted is None:
        return None, {}
    more: dict[str, Any] = {"model_uses": consulted.uses(before, site.now())}
    if not consulted.proposed.fields:
        return None, more
    asked = question(site.domain, consulted, _next_version(before), site.now())
    if model.accept == "verified":
        return None, {**more, **asked.change, "cataloged_by": "ai"}
    return asked, more


def _next_version(before: SiteSchema | None) -> int:
    return 1 if before is None else before.version + 1


def _signalled(site: Site, params: MapperParams) -> MapperParams:
    """The params, with what the signal that started the run asks for. One about another site: nothing."""
    signal = site.ctx.run.signal
    data = signal.data if signal is not None and isinstance(signal.data, dict) else {}
    if data.get("domain", site.domain) != site.domain:
        raise Skip(f"the signal is about {data['domain']}, not about {site.domain}")
    is_asked = params.force_image_refresh or data.get("force_image_refresh") is True
    return msgspec.structs.replace(params, force_image_refresh=is_asked)


async def _reason(site: Site, before: SiteSchema | None, params: MapperParams) -> str:
    """Why the site is learned now; a Skip that says why not."""
    if before is not None and not params.force and _is_redesigned(site, before):
        if any(each.kind == "redesign" for each in before.open_proposals):
            raise Skip(f"a person decides what is proposed about {site.domain} first")
        if _is_tried(before, site.ctx.now()):
            raise Skip(f"what was learned of {site.domain} lately is still tried")
        if not _drifted(site) and _is_just_learned(before, site.ctx.now()):
            raise Skip(f"{site.domain} was learned lately, and the validator is not convinced")
        return REDESIGNED
    if params.force_image_refresh:
        return IMAGES
    if params.force:
        return "it was asked for"
    now = site.ctx.now()
    why = _staleness(before, now, params)
    if not why:
        raise Skip(
            f"the schema of {site.domain} is fresh: learned {(before and before.cataloged_at)}"
        )
    learned = await _learned_lately(site, now)
    if learned >= params.limit:
        raise Skip(f"{learned} sites were learned within 12 hours; limit is {params.limit}")
    return why


def _staleness(before: SiteSchema | None, now: float, params: MapperParams) -> str:
    if before is None:
        return "nobody had learned it"
    age = age_s(before.cataloged_at, now)
    if age is None or age > duration_s(params.stale_after):
        return f"what was known is older than {params.stale_after}"
    if before.validation is not None and not before.is_valid and age > AGAIN_AFTER_S:
        return "the validator was not convinced"
    return ""


async def _learned_lately(site: Site, now: float) -> int:
    """Sites that were learned this night; the limit keeps what is read of so many sites small."""
    found = 0
    async for each in site.ctx.records(SCHEMAS):
        data = each["data"] if isinstance(each["data"], dict) else {}
        at = (
            seconds_of(data.get("cataloged_at"))
            if isinstance(data.get("cataloged_at"), str)
            else None
        )
        found += at is not None and now - at < NIGHT_S and each["key"] != site.domain
    return found


async def _known(site: Site, visited: Visited) -> dict[str, dict[str, Any]]:
    """Values that records of these pages have: by them, a field is found again where it has moved."""
    found = {}
    for url in visited.pages:
        data = await record(site.ctx, site.collection, url)
        if data is not None:
            found[url] = {name: value for name, value in data.items() if name not in NO_FIELDS}
    return found


def _flagged(before: SiteSchema | None) -> set[str]:
    notes = before.pollution_notes if before is not None else ()
    return {image for note in notes for image in note.images}


def save_learned(
    site: Site,
    before: SiteSchema | None,
    learned: Learned,
    visited: Visited,
    why: str,
    asked: Proposal | None = None,
    **more: Any,
) -> None:
    """A new version of the schema; notes stay with it, and proposals that it has not made pointless."""
    schema = learned.schema
    version = _next_version(before)
    fields = sum(len(each.fields) for each in schema.schema_data.page_types.values())
    include, exclude = image_selectors(before, schema)
    refreshes = 0 if before is None else before.image_refreshes
    learned_now: dict[str, Any] = {
        "site_name": schema.site_name,
        "site_type": schema.site_type,
        "schema_data": schema.schema_data,
        "classification_confidence": schema.classification_confidence,
        "image_include_selectors": include,
        "image_exclude_selectors": exclude,
        "extraction_confidence": schema.extraction_confidence,
        "cataloged_at": site.now(),
        "cataloged_by": "system",
        "is_valid": False,
        "validation": None,
        "version": version,
        "held_out": visited.held_out(schema.schema_data),
        "learned_for": why,
        "learned_by": site.ctx.source.key,
        "learnings": learnings(before, site.now(), version, schema.extraction_confidence),
        "image_refreshes": refreshes + (why == IMAGES),
        "candidate": None,
    }
    empty = {} if before is not None else EMPTY
    saved = {**learned_now, **empty, **more}
    site.save(**{**saved, **_proposals(site, before, saved, asked)})
    site.ctx.note(
        f"learned {site.domain} ({why}): version {version}, {count(len(visited.pages), 'page')}, "
        f"{count(fields, 'field')}, "
        f"confidence {schema.extraction_confidence or 0:.2f}"
    )
    site.ctx.signal(LEARNED, domain=site.domain, version=version)


def _proposals(
    site: Site, before: SiteSchema | None, saved: Mapping[str, Any], asked: Proposal | None
) -> dict[str, Any]:
    """What becomes of the proposals of the site, with a new one; nothing where all stays as it is."""
    known = () if before is None else before.schema_proposals
    after = with_fields(before or SiteSchema(site.domain), saved)
    proposals = carried(known, after, site.now())
    if asked is not None:
        proposals = propose(proposals, [made_about(after, asked)])
        site.ctx.signal(PROPOSED, domain=site.domain, proposal=asked.id)
    return {} if proposals == list(known) else {"schema_proposals": proposals}


def learnings(
    before: SiteSchema | None, at: str, version: int, confidence: float | None
) -> list[Learning]:
    """By them an alert says that the mapper is not sure of a site again and again."""
    known = before.learnings if before is not None else ()
    # A site in which no field was found is one that nobody can be sure of.
    return [*known, Learning(at, version, confidence or 0.0)][-KEPT_LEARNINGS:]


def _drifted(site: Site) -> str:
    """The source whose pages have changed, if a signal about that has started this run."""
    signal = site.ctx.run.signal
    return (signal.source or "") if signal is not None and signal.name == DRIFTED else ""


def _is_redesigned(site: Site, schema: SiteSchema) -> bool:
    """An alert says so, or the validator: a schema that records were extracted by reads no pages any more."""
    if _drifted(site):
        return True
    check = schema.validation
    is_broken = check is not None and check.version == schema.version and not schema.is_valid
    is_refused = any(each.kind == "redesign" for each in schema.schema_proposals)
    return is_broken and not is_refused and bool(schema.extracted_by and schema.last_verified_at)


def _is_just_learned(schema: SiteSchema, now: float) -> bool:
    """A schema that the validator refuses is learned again once a day: or both would go on for ever."""
    age = age_s(schema.cataloged_at, now)
    return age is not None and age < AGAIN_AFTER_S


def _is_tried(schema: SiteSchema, now: float) -> bool:
    candidate = schema.candidate
    age = None if candidate is None else age_s(candidate.learned_at, now)
    return age is not None and age < TRIED_S


def save_candidate(site: Site, before: SiteSchema, learned: Learned, visited: Visited) -> None:
    """What was learned is tried on stored pages first; until then the schema stays as it is."""
    schema = learned.schema
    if not schema.schema_data.available_fields:
        raise BadData(
            f"{site.domain} was learned again, and nothing of an item was found on "
            f"{count(len(visited.pages), 'page')}",
            cause="nothing to learn from",
        )
    include, exclude = image_selectors(before, schema)
    change = {
        "site_name": schema.site_name,
        "site_type": schema.site_type,
        "schema_data": schema.schema_data,
        "classification_confidence": schema.classification_confidence,
        "image_include_selectors": include,
        "image_exclude_selectors": exclude,
        "extraction_confidence": schema.extraction_confidence,
    }
    candidate = Candidate(
        str(site.ctx.run.id),
        site.now(),
        msgspec.to_builtins(change),
        visited.held_out(schema.schema_data),
    )
    site.save(candidate=candidate)
    site.ctx.note(f"learned {site.domain} again ({REDESIGNED}); a replay of stored pages tries it")
    site.ctx.signal(
        TRIAL,
        source=_drifted(site) or before.extracted_by,
        params={"site_schema": "candidate"},
        ignore=["extracted"],
        about={"domain": site.domain, "candidate": candidate.id},
    )


# What others write.
EMPTY: dict[str, Any] = {
    "pollution_notes": (),
    "supplier_references": (),
    "schema_proposals": (),
    "last_verified_at": None,
}
