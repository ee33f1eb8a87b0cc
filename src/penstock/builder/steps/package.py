"""Quality and the package: issues and scores of companies, and the dataset as a package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.builder import quality
from penstock.builder.company import Company, dataset_row
from penstock.builder.job import Job
from penstock.builder.matching import rejoin
from penstock.builder.package import Manifest, export
from penstock.builder.steps.place import (
    PASSING,
    finished_collection,
    is_full,
    passed_on,
    run_of,
    runs_collection,
    the_job,
)
from penstock.jobs.failures import Permanent

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

Found = dict[str, Any]


async def quality_checks(company: Found) -> Found:
    """What is missing or contradicts itself."""
    return passed_on({**company, "issues": quality.check(company)})


async def quality_score(company: Found, ctx: Context) -> None:
    """Save the company with its score, with what was checked and who said what."""
    job = the_job(ctx)
    score = quality.score(company, company["issues"], job.weights)
    made = {**company, "quality_score": score}
    beside = {k: made[k] for k in ("checks", "evidence") if k in made and k not in PASSING}
    collection = job.output.collection
    ctx.save(collection, key=made["id"], data={**dataset_row(made), **beside}, score=score)
    ctx.save(finished_collection(job), key=made["id"], data={"run": run_of(ctx)})


async def package_export(ctx: Context) -> None:
    """The package, if all companies of the run are finished; its KPIs stay with the run."""
    job, run = the_job(ctx), run_of(ctx)
    about = await _about(ctx, job, run)
    finished = {
        each["key"]
        async for each in ctx.records(finished_collection(job))
        if each["data"]["run"] == run
    }
    _refuse_incomplete(job, len(finished), about["companies"])
    companies: list[Company] = []
    async for record in ctx.records(job.output.collection):
        if record["key"] in finished:
            companies.append(record["data"])
        elif is_full(ctx) and not ctx.run.options.pages and not record["data"].get("deleted"):
            # Found by a run before, and by this one not any more; a sample does not look for all.
            gone = {"id": record["key"], "deleted": True}
            ctx.save(job.output.collection, key=record["key"], data=gone)
    root, rows = Path(ctx.source.root), about["rows"]
    packed = await ctx.in_thread(lambda: list(joined(job, companies)))
    manifest = await ctx.in_thread(lambda: exported(root, job, packed, rows))
    _report(ctx, job, manifest, {**about, "joined": len(companies) - len(packed)})


def joined(job: Job, companies: list[Company]) -> Iterator[Company]:
    """The companies, with those as one that only enrichment has shown to be one."""
    for company in rejoin(companies, job.dedupe.threshold):
        if company.get("quality_score") is None:
            issues = quality.check(company)
            score = quality.score(company, issues, job.weights)
            company = {**company, "issues": issues, "quality_score": score}
        yield company


def _refuse_incomplete(job: Job, finished: int, expected: int) -> None:
    missing = expected - finished
    if expected and 100.0 * missing / expected > job.output.max_missing_pct:
        raise Permanent(
            f"{missing:,} of {expected:,} companies are not finished, so there is no package: see what is in "
            "quarantine, or set output.max_missing_pct",
            cause="incomplete",
        )


async def _about(ctx: Context, job: Job, run: int) -> Found:
    """What is remembered of the run so far."""
    found: Found = {"rows": 0, "companies": 0, "began_at": ctx.now()}
    async for record in ctx.records(runs_collection(job)):
        if record["key"] == str(run):
            found.update(record["data"])
    return found


def exported(root: Path, job: Job, companies: list[Company], rows: int) -> Manifest:
    """The package of these companies, below the project's folder."""
    return export(
        companies,
        root / job.output.dir,
        title=job.title,
        formats=job.output.formats,
        targets={k: v for k, v in job.targets.items() if k != "min_lines_per_s"},
        rows=rows,
    )


def _report(ctx: Context, job: Job, manifest: Manifest, about: Found) -> None:
    """KPIs: those of the package, and the speed of the run, which would make each package another."""
    seconds = max(ctx.now() - about["began_at"], 0.001)
    figures = quality.kpis(manifest.quality, job.targets, about["rows"] / seconds)
    met = sum(each.is_met for each in figures)
    came_to = {
        "path": str(Path(job.output.dir, Path(manifest.path).name)),
        "packaged": manifest.companies,
        "joined": about["joined"],
        "seconds": round(seconds, 3),
        "kpis": msgspec.to_builtins(figures),
        "all_kpis_met": met == len(figures),
    }
    ctx.save(runs_collection(job), key=run_of(ctx), data=came_to, merge="merge")
    ctx.note(
        f"{manifest.companies:,} companies are packaged in {came_to['path']}; "
        f"{met} of {len(figures)} targets are met"
    )
