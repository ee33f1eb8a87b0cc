"""The extraction: records by a trusted schema."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from penstock.agents.extract import Extracted, extract
from penstock.agents.pipelines.mapper import mapper
from penstock.agents.schema import SiteSchema, with_candidate
from penstock.agents.site import READS, Site, record
from penstock.agents.trust import TrustParams, require_trusted
from penstock.connectors.graphs import documents, listed
from penstock.counting import count
from penstock.jobs.failures import BadData, Permanent
from penstock.pipeline.context import Context
from penstock.pipeline.pipeline import Pipeline

# Beside the fields of an item: where they come from.
ABOUT = "extracted"
# The param by which a replay tries what was learned after a redesign.
SITE_SCHEMA, CANDIDATE = "site_schema", "candidate"


class ExtractionParams(msgspec.Struct, frozen=True):
    """`most_missing` is the share of the fields of every item that a page may lack."""

    most_missing: float = 0.5


extraction = Pipeline("extraction")
extraction.version = mapper.version
extraction.reads = READS


@extraction.step(unit="run")
async def discover(ctx: Context) -> AsyncIterator[dict[str, Any]]:
    """The pages of the site, if its schema is trusted."""
    site = Site(ctx)
    rules = site.params(TrustParams)
    schema = await site.schema()
    require_trusted(schema, site.domain, ctx.now(), rules)
    if schema is not None and schema.extracted_by != ctx.source.key:
        # By it the mapper knows whose pages a trial is to replay.
        site.note_reader(ctx.source.key)
    _depend_on(ctx, schema)
    async for item in listed(ctx, site.web):
        yield item


@extraction.step(after="discover", unit="page", key="key", follow=True)
async def read(item: dict[str, Any], ctx: Context) -> AsyncIterator[dict[str, Any]]:
    site = Site(ctx)
    _depend_on(ctx, await _schema(site))
    async for document in documents(ctx, site.web, item):
        yield document


async def _schema(site: Site) -> SiteSchema | None:
    """The schema; in a replay that tries the candidate, as that would have it."""
    schema = await site.schema()
    if site.ctx.params.get(SITE_SCHEMA) != CANDIDATE:
        return schema
    if not site.ctx.run.options.is_staged:
        raise Permanent(f"params.{SITE_SCHEMA}: a candidate is tried by staged replays alone")
    return schema and with_candidate(schema)


def _depend_on(ctx: Context, schema: SiteSchema | None) -> None:
    """A page that is as it was is read again if the schema is not."""
    if schema is not None:
        ctx.in_progress.made_with = f"schema {schema.version}"


@extraction.step(after="read", unit="page")
async def save(document: dict[str, Any], ctx: Context) -> None:
    """The record of a page; a page that is not of an item leaves nothing."""
    site, url = Site(ctx), document["key"]
    if document.get("deleted"):
        if await record(ctx, site.collection, url) is not None:
            ctx.save(site.collection, key=url, data={"url": url, "deleted": True})
        return
    schema, html = await _schema(site), document["meta"].get("html")
    if schema is None or html is None:
        return
    found = await ctx.in_thread(lambda: extract(schema, url, html))
    if found is None:
        return
    required = schema.schema_data.page_types[found.page_type].fields
    wanted = [name for name, about in required.items() if about.required]
    # A record that is half empty would take the place of a whole one.
    if wanted and len(found.missing) > site.params(ExtractionParams).most_missing * len(wanted):
        raise BadData(
            f"{len(found.missing)} of {count(len(wanted), 'field')} that every {found.page_type} has are "
            f"missing ({', '.join(found.missing[:5])}): is this page built in another way?",
            cause=f"selectors of {site.domain}",
        )
    about = {
        "domain": site.domain,
        "page_type": found.page_type,
        "schema_version": schema.version,
        "disputed": found.disputed,
    }
    data = {**_certain(found), "url": url, ABOUT: about}
    score = 1 - len({*found.missing, *found.disputed}) / max(1, len(required))
    ctx.save(site.collection, key=url, data=data, score=round(score, 3))


def _certain(found: Extracted) -> dict[str, Any]:
    """What is found and not disputed; the rest is null."""
    return {name: None if name in found.disputed else value for name, value in found.data.items()}
