"""The validator: tries a schema on pages that nothing was learned from, and scores it."""

from __future__ import annotations

from penstock.agents.pipelines.mapper import mapper
from penstock.agents.site import READS, Site
from penstock.agents.trust import TrustParams
from penstock.agents.validate import validate
from penstock.counting import count
from penstock.jobs.outcome import Skip
from penstock.pipeline.context import Context
from penstock.pipeline.pipeline import Pipeline

# By them, a site that is read well needs no dear model.
KEPT_SCORES = 10
VALIDATED, INVALID = "site.validated", "site.invalid"

validator = Pipeline("validator", retry="conservative")
validator.version = mapper.version
validator.reads = READS


@validator.step(unit="run", timeout="1h")
async def validate_schema(ctx: Context) -> None:
    """Fetch the pages that were held out, and compare what the schema finds on them."""
    site = Site(ctx)
    params = site.params(TrustParams)
    schema = await site.schema()
    if schema is None:
        raise Skip(f"nobody has learned {site.domain} yet: run its mapper")
    pages = await site.pages(schema.held_out)
    found = await ctx.in_thread(
        lambda: validate(schema, list(pages.values()), len(schema.held_out), site.now())
    )
    is_valid = found.score >= params.least_score
    is_new = schema.validation is None or schema.validation.version != schema.version
    verified = {"last_verified_at": site.now()} if is_valid else {}
    scores = [*schema.scores, found.score][-KEPT_SCORES:]
    site.save(validation=found, is_valid=is_valid, scores=scores, **verified)
    ctx.note(
        f"the schema of {site.domain}, version {schema.version}, scores {found.score:.2f} on "
        f"{count(found.pages, 'page')}: {'valid' if is_valid else '; '.join(found.problems[:3])}"
    )
    if is_valid:
        ctx.schema_verified()
        if is_new:
            ctx.signal(VALIDATED, domain=site.domain, version=schema.version)
    else:
        ctx.signal(INVALID, domain=site.domain, version=schema.version, score=found.score)
