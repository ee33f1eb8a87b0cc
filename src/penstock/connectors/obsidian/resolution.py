"""Which notes of a vault have to be read: those that changed, and those whose links lead elsewhere now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.contract import Item
from penstock.connectors.listing import knowledge_of
from penstock.connectors.obsidian.documents import has_links, links_in
from penstock.connectors.obsidian.vault import Vault, fingerprint
from penstock.http.lastmod import FINGERPRINT
from penstock.jobs.effects.pages import KnownPage
from penstock.jobs.failures import BadData

if TYPE_CHECKING:
    from penstock.pipeline.context import Context


async def known_pages(ctx: Context, items: Sequence[Item]) -> dict[str, KnownPage]:
    if not items:
        return {}
    addresses = [item.address for item in items]
    return await knowledge_of(ctx).known_pages(ctx.in_progress.job, addresses)


def has_stamp(item: Item, page: KnownPage | None) -> bool:
    """Whether the file is the one that was listed last."""
    if page is None or not item.fingerprint:
        return False
    return page.announced.startswith(f"{FINGERPRINT}{item.fingerprint}.")


class Resolution:
    """Gives each note what its links lead to, and a fingerprint that changes with that."""

    def __init__(
        self, ctx: Context, vault: Vault, is_same: bool, read: Callable[[Item], bytes]
    ) -> None:
        self._ctx = ctx
        self._vault = vault
        self._is_same = is_same
        self._read = read
        self.unresolved = 0

    async def complete(self, items: list[Item]) -> list[Item]:
        known = await known_pages(self._ctx, [item for item in items if has_links(item.key)])
        is_kept = [self._is_as_it_was(item, known.get(item.address)) for item in items]
        return await self._ctx.in_thread(
            lambda: [
                self._resolved(item, known.get(item.address), kept)
                for item, kept in zip(items, is_kept, strict=True)
            ]
        )

    def _is_as_it_was(self, item: Item, page: KnownPage | None) -> bool:
        """By the rule of the listing, which will leave it out; nobody looks at its links then."""
        return (
            page is not None
            and self._is_same
            and self._ctx.run.policy.skips_unchanged
            and page.done_version == self._ctx.source.version
            and page.announced == page.done_announced
            and has_stamp(item, page)
        )

    def _resolved(self, item: Item, page: KnownPage | None, is_kept: bool) -> Item:
        if not has_links(item.key):
            return item
        if is_kept and page is not None:
            return msgspec.structs.replace(
                item, fingerprint=page.announced.removeprefix(FINGERPRINT)
            )
        found = self._links(item)
        mark = fingerprint(found)
        before = page.done_announced.rpartition(".")[2] if page is not None else mark
        return msgspec.structs.replace(
            item,
            fingerprint=f"{item.fingerprint}.{mark}" if item.fingerprint else "",
            about={"to": found, "anew": before != mark},
        )

    def _links(self, item: Item) -> dict[str, Any]:
        """What is known of each link that leads to a file, by its path as it was written."""
        try:
            links = links_in(item.key, self._read(item))
        except BadData:
            return {}  # whoever reads it will say so
        found: dict[str, Any] = {}
        for link in links:
            resolved = self._vault.resolve(link, item.key) if link.path else None
            if resolved is not None:
                found[link.path] = msgspec.to_builtins(resolved)
            elif link.path:
                self.unresolved += 1
        return found
