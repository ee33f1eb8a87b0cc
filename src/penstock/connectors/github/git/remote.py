"""A repository on a git server, by protocol version 2 over HTTP; only its trees are kept.

The trees of a commit come in one pack: without the blobs if the server can filter, and without what the
commit that was listed last has, too. Each blob comes alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.connectors.contract import Gone
from penstock.connectors.github.git import packs, protocol
from penstock.connectors.github.git.kept_trees import (
    KeptTrees,
    is_whole,
    keep_trees,
    kept_trees,
    require_whole,
)
from penstock.connectors.github.git.tree_walk import entries_of
from penstock.connectors.github.trees import Entry
from penstock.http.failures import FetchError
from penstock.jobs.failures import Permanent
from penstock.pipeline.fetch_options import FetchOptions

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

REFS = "/info/refs?service=git-upload-pack"
# What a pack of trees may unpack to; one that brings the blobs, too, is as large as the branch.
MOST_UNPACKED = 256_000_000
_TREES = frozenset({packs.COMMIT, packs.TREE})
_BLOBS = frozenset({packs.BLOB})
_VERSION = {"Git-Protocol": "version=2"}


class RemoteRepository:
    """Asked by the step that has this context, within the limits of its source."""

    def __init__(self, ctx: Context, url: str, most_bytes: int) -> None:
        self._ctx = ctx
        self._url = url.rstrip("/")
        self._most = most_bytes
        self._can: dict[str, str] = {}

    async def head(self, branch: str | None) -> str:
        """The commit of a branch; empty if the repository has none yet."""
        await self._greet()
        wanted = f"refs/heads/{branch}" if branch else "HEAD"
        body = await self._ask("ls-refs", ["symrefs", "ref-prefix HEAD", f"ref-prefix {wanted}"])
        refs = protocol.refs_of(body)
        if branch and refs and wanted not in refs:
            raise Permanent(f"there is no branch {branch}", cause="no such branch")
        return refs.get(wanted, "")

    async def entries(self, commit: str) -> Iterable[Entry]:
        kept = await kept_trees(self._ctx)
        objects = kept.objects
        if commit != kept.commit:
            objects = await self._trees(commit, kept)
            await keep_trees(self._ctx, commit, objects)
        return entries_of(objects.__getitem__, commit)

    async def _trees(self, commit: str, kept: KeptTrees) -> dict[str, bytes]:
        """The commit and its trees: what is new of them is fetched, or all if that does not fit together."""
        if kept.commit:
            objects = {**kept.objects, **await self._fetched(commit, kept)}
            if await self._ctx.in_thread(lambda: is_whole(commit, objects)):
                return objects
        objects = await self._fetched(commit, KeptTrees())
        await self._ctx.in_thread(lambda: require_whole(commit, objects))
        return objects

    async def _fetched(self, commit: str, kept: KeptTrees) -> dict[str, bytes]:
        can_filter = "filter" in self._can.get("fetch", "").split()
        only_trees = ["filter blob:none"] if can_filter else []
        # As a shallow clone says it: only then a server leaves out of one commit what another one has.
        had = [f"shallow {kept.commit}", "thin-pack"] if kept.commit else []
        have = [f"have {kept.commit}"] if kept.commit else []
        arguments = ["no-progress", "ofs-delta", *had, "deepen 1", *only_trees]
        body = await self._ask("fetch", [*arguments, f"want {commit}", *have, "done"])
        return await self._ctx.in_thread(
            lambda: packs.objects_of(
                protocol.pack_of(body), MOST_UNPACKED, _TREES, bases=kept.objects
            )
        )

    async def blob(self, name: str) -> bytes:
        arguments = ["no-progress", "ofs-delta", f"want {name}", "done"]
        body = await self._ask("fetch", arguments)
        # Twice as much: a blob that is too large by little is told from a pack without end.
        objects = await self._ctx.in_thread(
            lambda: packs.objects_of(protocol.pack_of(body), 2 * self._most, _BLOBS)
        )
        if name not in objects:
            raise Gone("its content is not in the repository any more")
        return objects[name]

    async def _greet(self) -> None:
        try:
            response = await self._ctx.send(self._url + REFS, FetchOptions(headers=_VERSION))
        except FetchError as error:
            if error.status != 404:
                raise
            words = "there is no git repository at this url, or the token may not see it"
            raise Permanent(words, cause="no such repository") from None
        if response.url.endswith(REFS):
            self._url = response.url.removesuffix(REFS)
        self._can = protocol.capabilities_of(response.body)

    async def _ask(self, command: str, arguments: list[str]) -> bytes:
        headers = {
            **_VERSION,
            "Content-Type": "application/x-git-upload-pack-request",
            "Accept": "application/x-git-upload-pack-result",
        }
        body = protocol.command(command, arguments)
        options = FetchOptions(headers=headers, body=body)
        return (await self._ctx.send(f"{self._url}/git-upload-pack", options)).body
