"""Image QA: looks at the galleries of a site, and has the mapper learn polluted ones again."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.agents.extract import type_of
from penstock.agents.gallery.check import Finding, check
from penstock.agents.gallery.picture import look, need_pillow
from penstock.agents.gallery.shown import addresses_of
from penstock.agents.learn.learn import Sample
from penstock.agents.learn.sampling import spread
from penstock.agents.pipelines.mapper import mapper
from penstock.agents.pollution import Pollution, noted, question
from penstock.agents.proposals import ESCALATED, propose
from penstock.agents.schema import Note, SiteSchema
from penstock.agents.site import READS, Site
from penstock.counting import count
from penstock.jobs.outcome import Skip
from penstock.pipeline.context import Context
from penstock.pipeline.pipeline import Pipeline

POLLUTED = "site.polluted"
# Of so many records, pages are chosen from the first ones.
MOST_RECORDS = 5000


class ImageParams(msgspec.Struct, frozen=True):
    """`pages` of one run, and at most so many `images` of them; only of sites of these types, if any."""

    pages: int = 18
    images: int = 120
    site_types: tuple[str, ...] = ()


image_qa = Pipeline("image_qa", retry="conservative")
image_qa.version = mapper.version
image_qa.reads = READS


@image_qa.step(unit="run", timeout="1h")
async def check_images(ctx: Context) -> None:
    """Compare the images of some pages with each other; write a note for each selector that is polluted."""
    need_pillow()
    site = Site(ctx)
    params = site.params(ImageParams)
    schema = await site.schema()
    if schema is None or not _has_images(schema):
        raise Skip(f"the schema of {site.domain} has no images: run its mapper")
    if params.site_types and schema.site_type not in params.site_types:
        raise Skip(
            f"{site.domain} is of the type {schema.site_type}, not {', '.join(params.site_types)}"
        )
    samples = list((await site.pages(await _addresses(site, schema, params.pages))).values())
    if not samples:
        raise Skip(f"no page of {site.domain} could be read")
    found = noted(
        schema, await _findings(site, schema, samples, params.images), len(samples), site.now()
    )
    _save(site, schema, found)
    _tell(site, schema, found, len(samples))


def _has_images(schema: SiteSchema) -> bool:
    return any("images" in each.fields for each in schema.schema_data.page_types.values())


async def _addresses(site: Site, schema: SiteSchema, most: int) -> list[str]:
    """Pages that nothing was learned from, then others of the site's records: other ones for each version."""
    known: list[str] = []
    async for row in site.ctx.records(site.collection):
        if len(known) >= MOST_RECORDS:
            break
        found = type_of(schema, row["key"])
        if found is not None and "images" in found[1].fields:
            known.append(row["key"])
    chosen = [*schema.held_out, *spread(known, f"images {schema.version}")]
    return list(dict.fromkeys(chosen))[:most]


async def _findings(
    site: Site, schema: SiteSchema, samples: list[Sample], most: int
) -> list[Finding]:
    wanted = await site.ctx.in_thread(lambda: addresses_of(schema, samples, most))
    bodies = await site.images(wanted)

    def compared() -> list[Finding]:
        return check(schema, samples, {url: look(body) for url, body in bodies.items()})

    return await site.ctx.in_thread(compared)


def _save(site: Site, schema: SiteSchema, found: Pollution) -> None:
    fields: dict[str, Any] = {"pollution_notes": found.notes}
    if not found.fresh:
        fields["image_refreshes"] = 0
    questions = [question(schema, note) for note in found.escalated]
    if questions:
        fields["schema_proposals"] = propose(schema.schema_proposals, questions)
    site.save(**fields)


def _tell(site: Site, schema: SiteSchema, found: Pollution, pages: int) -> None:
    """The mapper learns the site again for what is new; a person decides what has failed too often."""
    ctx = site.ctx
    if not found.fresh and not found.escalated:
        ctx.note(f"the images of {site.domain} are clean on {count(pages, 'page')}")
    for note in found.fresh:
        ctx.note(f"{note.selector} of {site.domain} is polluted: {_words(note)}")
    if found.fresh:
        ctx.signal(
            POLLUTED,
            domain=site.domain,
            version=schema.version,
            force_image_refresh=True,
            selectors=sorted({note.selector for note in found.fresh}),
        )
    for note in found.escalated:
        ctx.note(
            f"{note.selector} of {site.domain} has failed {count(note.count, 'time')}, a person decides: "
            f"{_words(note)}"
        )
        ctx.signal(
            ESCALATED,
            domain=site.domain,
            selector=note.selector,
            reason=note.reason,
            failures=note.count,
            pages=note.pages,
            images=note.images,
            proposal=question(schema, note).id,
        )


def _words(note: Note) -> str:
    return f"{note.reason}, {count(len(note.images), 'image')} on {count(len(note.pages), 'page')}"
