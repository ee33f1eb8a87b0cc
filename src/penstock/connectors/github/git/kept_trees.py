"""The commit that was listed last, with its trees: a snapshot, so that a server sends only what is new.

Git names objects by their content: each one is named again when it is read, so a damaged one is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from penstock.connectors.github.git import packs
from penstock.connectors.github.git.tree_walk import trees_of
from penstock.connectors.listing import knowledge_of
from penstock.jobs.failures import BadData
from penstock.pipeline.context import Captured

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

CONTENT_TYPE = "application/x-penstock-git-trees"
# The trees of about 400,000 files. More than that is asked for whole each time.
MOST_KEPT = 16_000_000
_HEAD = 5


class KeptTrees(msgspec.Struct, frozen=True):
    """A commit and all its trees, by their names; nothing where no commit was listed yet."""

    commit: str = ""
    objects: dict[str, bytes] = {}


async def kept_trees(ctx: Context) -> KeptTrees:
    """What the last listing of this source has kept, if it is still there and whole."""
    stored = await knowledge_of(ctx).last_stored(ctx.in_progress.job, _address(ctx))
    return KeptTrees() if stored is None else await ctx.in_thread(lambda: parsed(stored.body))


async def keep_trees(ctx: Context, commit: str, objects: Mapping[str, bytes]) -> None:
    """Keep the commit with what belongs to it, and nothing else."""
    packed = await ctx.in_thread(lambda: written(commit, objects))
    if len(packed) > MOST_KEPT:
        return

    async def bring() -> Captured:
        return Captured(packed)

    await ctx.capture(_address(ctx), bring, CONTENT_TYPE, counted=False, is_page=False)


def written(commit: str, objects: Mapping[str, bytes]) -> bytes:
    """The commit, then its trees: kind and length of each, and its bytes."""
    return b"".join(
        bytes([kind]) + len(data).to_bytes(4, "big") + data
        for kind, data in _in_order(commit, objects)
    )


def _in_order(commit: str, objects: Mapping[str, bytes]) -> Iterator[tuple[int, bytes]]:
    yield packs.COMMIT, objects[commit]
    for name in trees_of(objects.__getitem__, commit):
        yield packs.TREE, objects[name]


def parsed(body: bytes) -> KeptTrees:
    """What was written; nothing if it is not whole."""
    objects: dict[str, bytes] = {}
    first, at = "", 0
    while at < len(body):
        kind, end = body[at], at + _HEAD + int.from_bytes(body[at + 1 : at + _HEAD], "big")
        if kind not in (packs.COMMIT, packs.TREE) or end > len(body):
            return KeptTrees()
        data = body[at + _HEAD : end]
        name = packs.name_of(kind, data)
        first, at = first or name, end
        objects[name] = data
    return KeptTrees(first, objects) if first and is_whole(first, objects) else KeptTrees()


def is_whole(commit: str, objects: Mapping[str, bytes]) -> bool:
    """Whether a commit and all its trees are there."""
    try:
        require_whole(commit, objects)
    except BadData:
        return False
    return True


def require_whole(commit: str, objects: Mapping[str, bytes]) -> None:
    """Raises BadData where a tree is missing or can't be read."""
    try:
        for name in trees_of(objects.__getitem__, commit):
            objects[name]
    except KeyError:
        raise BadData("a tree is missing in the pack", cause="a broken pack") from None


def _address(ctx: Context) -> str:
    return f"git-trees://{ctx.source.key}"
