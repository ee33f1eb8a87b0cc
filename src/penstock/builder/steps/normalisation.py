"""Normalisation: rows as companies, and rows that are one company as one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from penstock.builder.company import Company
from penstock.builder.enrich.address import (
    AddressParser,
    Libpostal,
    PostcodeAddresses,
    UsAddresses,
    usual_parser,
    with_address,
)
from penstock.builder.job import Filters, Job
from penstock.builder.matching import resolve
from penstock.builder.normalize.standardize import standardize
from penstock.builder.normalize.text import plain
from penstock.builder.steps.place import (
    passed_on,
    rows_collection,
    run_of,
    runs_collection,
    the_job,
)
from penstock.jobs.failures import Permanent
from penstock.jobs.outcome import Reject

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

Found = dict[str, Any]
_OF_RECORDS = ("run",)


async def normalize_standardize(row: Found, ctx: Context) -> None:
    """Save the row as a company; a row that names none is rejected, and kept."""
    job = the_job(ctx)
    company = standardize(
        row["row"],
        country=row.get("country") or job.country or None,
        fields=row.get("fields"),
        source=row["source"],
    )
    if company is None:
        raise Reject(f"{row['key']}: the row names no company", code="no_name")
    company = with_address(company, parser_of(job))
    ctx.save(rows_collection(job), key=row["key"], data={**company, "run": run_of(ctx)})


async def normalize_resolve(ctx: Context) -> AsyncIterator[Found]:
    """One company for all rows of the run that are one."""
    job, run = the_job(ctx), run_of(ctx)
    rows: list[Company] = []
    async for record in ctx.records(rows_collection(job)):
        data = record["data"]
        if data["run"] == run:
            rows.append({name: value for name, value in data.items() if name not in _OF_RECORDS})
    found = await ctx.in_thread(lambda: list(resolve(rows, job.dedupe.threshold)))
    wanted = [company for company in found if is_wanted(company, job.filters)]
    # A sample is of so many companies; without one, of all.
    kept = wanted[: ctx.run.options.pages]
    about = {"rows": len(rows), "companies": len(kept), "left_out": len(found) - len(kept)}
    ctx.save(runs_collection(job), key=run, data=about, merge="merge")
    for company in kept:
        yield passed_on(company)


def parser_of(job: Job) -> AddressParser:
    """The parser of addresses that the job wants; an error if it is not installed."""
    wanted = job.address.parser
    if wanted == "libpostal":
        try:
            return Libpostal()
        except ImportError:
            raise Permanent(
                "address.parser is libpostal, which is not installed (pip install postal, with its data; "
                "or address.parser: auto)",
                cause="libpostal",
            ) from None
    if wanted == "usaddress":
        return UsAddresses()
    return PostcodeAddresses() if wanted == "postcode" else usual_parser()


def is_wanted(company: Company, filters: Filters) -> bool:
    """Whether a company passes the filters; what it does not say speaks against nothing."""
    category = plain(company.get("category") or "")
    # A list may have its codes in the column of categories.
    code = plain(company.get("activity_code") or (category if category[:1].isdigit() else ""))
    code = code.replace(".", "")
    begins = [plain(each) for each in filters.categories]
    codes = [plain(each).replace(".", "") for each in filters.naf_include]
    region, country = company.get("region"), company.get("country")
    regions = {plain(each) for each in filters.regions}
    return (
        (not (category and begins) or any(category.startswith(each) for each in begins))
        and (not (code and codes) or any(code.startswith(each) for each in codes))
        and (not (region and regions) or plain(region) in regions)
        and (not (country and filters.countries) or country in filters.countries)
    )
