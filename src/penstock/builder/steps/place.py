"""What all steps share: the job of a context, the names of its collections, and the run that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.builder.job import Job, job_of
from penstock.errors import ConfigError
from penstock.jobs.failures import Permanent

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

COMPANY, ROW, LINK, PAGE = "company", "row", "link", "page"
# What of an item is no part of the company: what steps tell each other.
PASSING = frozenset({"kind", "hits", "pages", "address"})


def the_job(ctx: Context) -> Job:
    """The job; what is wrong with it fails at once, with the key that is wrong."""
    try:
        return job_of(ctx.params)
    except ConfigError as error:
        raise Permanent(f"{error.message} ({error.hint})", cause="job") from None


def run_of(ctx: Context) -> int:
    """The run whose rows and companies these are; a replay stands for the run that it replays."""
    return ctx.run.of_run_id or ctx.run.id


def rows_collection(job: Job) -> str:
    """The rows of all sources, as companies, before it is known which of them are one."""
    return f"{job.output.collection}_rows"


def runs_collection(job: Job) -> str:
    """What each run came to, by its number: rows, companies, KPIs, and where the package is."""
    return f"{job.output.collection}_runs"


def finished_collection(job: Job) -> str:
    """By the id of a company: the last run that has finished it."""
    return f"{job.output.collection}_finished"


def is_full(ctx: Context) -> bool:
    """Whether the run reads everything: what it does not find is no more."""
    return not ctx.run.policy.skips_unchanged


def passed_on(company: dict[str, Any]) -> dict[str, Any]:
    return {**company, "kind": COMPANY}
