"""A job as a person writes it: job.yaml, which holds the job and how it is run.

Everything of `Job` stands at its top, beside what is no parameter of a step: profile, features, budgets, and
what goes into the project that is made of it.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock.builder.job import Job, Part

Whole = Annotated[int, Meta(ge=0, le=1_000_000_000_000)]


class Budgets(Part, frozen=True):
    """What one run may use, over all processes and hosts together. 0 is no bound."""

    max_http_requests: Annotated[Whole, Meta(description="requests that are sent")] = 500
    max_http_bytes: Annotated[Whole, Meta(description="bytes of answers, with their headers")] = (
        10_000_000
    )
    time_budget_min: Annotated[
        float, Meta(ge=0, le=525_600, description="minutes from the beginning of the run")
    ] = 0
    ram_mb: Annotated[
        Whole, Meta(description="memory of Penstock's processes on one host, in MB")
    ] = 0


class JobFile(Job, frozen=True):
    """A job of the builder."""

    name: Annotated[
        str,
        Meta(
            pattern="^([A-Za-z0-9][A-Za-z0-9_-]{0,60})?$",
            description="of the project and its source; the file's name",
        ),
    ] = ""
    profile: Annotated[
        str | dict[str, Any],
        Meta(
            description="which steps run: the name of a profile, or one of your own: `{extends: standard, "
            "without: [http.serp], config: {crawl: {max_pages: 5}}}`"
        ),
    ] = "standard"
    profiles: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="profiles of your own by name, for `profile` and `--profile`"),
    ] = msgspec.field(default_factory=dict)
    features: Annotated[
        dict[str, bool], Meta(description="sets of steps, on or off: `{serp: false}`")
    ] = msgspec.field(default_factory=dict)
    budgets: Budgets = Budgets()
    source: Annotated[
        dict[str, Any],
        Meta(
            description="keys of the source in penstock.yaml: `{limits: {concurrency: 8}, fetch: "
            "{timeout: 10s}}`"
        ),
    ] = msgspec.field(default_factory=dict)
    penstock: Annotated[
        dict[str, Any],
        Meta(
            description='keys at the top of penstock.yaml: `{store: "${DATABASE_URL}", hosts: '
            "{api.example.com: {rate: 1/s}}}`"
        ),
    ] = msgspec.field(default_factory=dict)


# What of it the steps read.
PARAMS = tuple(field.encode_name for field in msgspec.structs.fields(Job))
