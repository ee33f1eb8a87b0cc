"""The graph of links: a record for each pair of files, `from → to`, that disappears with its last link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.jobs.job import KEY_LENGTH, bounded_key

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

ARROW = " → "
PAGE = 500


async def save_edges(
    ctx: Context, collection: str, key: str, links: Sequence[dict[str, Any]]
) -> None:
    """Save the edges of a file as they are now; those that it has no more become tombstones."""
    edges = _edges(key, links)
    for name, edge in edges.items():
        ctx.save(collection, key=name, data=edge)
    for name in await _known(ctx, collection, key):
        if name not in edges:
            ctx.save(collection, key=name, data={"key": name, "deleted": True})


def _edges(key: str, links: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    edges: dict[str, dict[str, Any]] = {}
    for link in links:
        if link["target"].startswith("#"):
            continue  # within the note itself
        name = bounded_key(f"{key}{ARROW}{link['to'] or link['target'].partition('#')[0]}")
        edge = edges.setdefault(
            name,
            {
                "key": name,
                "from": key,
                "to": link["to"],
                "targets": [],
                "kinds": [],
                "count": 0,
                "resolved": link["to"] is not None,
            },
        )
        edge["count"] += 1
        for field, value in (("targets", link["target"]), ("kinds", link["kind"])):
            if value not in edge[field]:
                edge[field].append(value)
    return edges


async def _known(ctx: Context, collection: str, key: str) -> list[str]:
    """Keys of the edges that it had. They lie together: records are read in the order of their keys."""
    services = ctx.in_progress.services
    found: list[str] = []
    # Long keys are cut, and end in a digest.
    start = after = f"{key}{ARROW}"[: KEY_LENGTH - 33]
    while True:
        page = await services.records(collection, after, PAGE)
        for record in page:
            if not record["key"].startswith(start):
                return found
            if record["data"].get("from") == key:
                found.append(record["key"])
        if len(page) < PAGE:
            return found
        after = page[-1]["key"]
