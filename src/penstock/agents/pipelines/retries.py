"""The retries: what failed in the last runs of agents is tried again, a few times."""

from __future__ import annotations

import msgspec

from penstock.agents.pipelines.mapper import mapper
from penstock.agents.trust import duration_s
from penstock.counting import count
from penstock.jobs.failures import Permanent
from penstock.pipeline.context import Context
from penstock.pipeline.pipeline import Pipeline

WANTED = "retry.wanted"


class RetryParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sources` whose last run is retried if it ended `within` this time, each run so many `times`."""

    sources: tuple[str, ...]
    within: str = "1d"
    times: int = 3


retries = Pipeline("retries")
retries.version = mapper.version


@retries.step(unit="run")
async def ask(ctx: Context) -> None:
    """Ask the leader to queue again what failed; it knows what there is."""
    try:
        params = msgspec.convert(ctx.params, RetryParams, strict=False)
    except msgspec.ValidationError as error:
        raise Permanent(f"params of {ctx.source.key}: {error}") from None
    within_s = duration_s(params.within)
    ctx.signal(WANTED, sources=list(params.sources), within_s=within_s, times=params.times)
    ctx.note(f"failures of {count(len(params.sources), 'source')} are to be tried again")
