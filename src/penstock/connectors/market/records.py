"""Records of a symbol, read by key from a moment on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from penstock.connectors.market.moments import SECOND_NS, written

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

PAGE = 500


async def records_of(
    ctx: Context, collection: str, prefix: str, since: float = 0.0
) -> AsyncIterator[dict[str, Any]]:
    """The data of records whose keys begin with the prefix and a timestamp of this moment or later."""
    begin = written(int(since) * SECOND_NS, is_exact=False) if since > 0 else ""
    after: str | None = prefix + begin.removesuffix("Z")
    while page := await ctx.in_progress.services.records(collection, after, PAGE):
        for record in page:
            if not record["key"].startswith(prefix):
                return
            yield record["data"]
        after = page[-1]["key"]
