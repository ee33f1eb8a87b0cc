"""The connector `obsidian`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from penstock.connectors.contract import Checkpoint, Document, Gone, Item, Sample, Unlisted
from penstock.connectors.files.connector import Files, FilesKeys, landed_files
from penstock.connectors.files.globs import Globs
from penstock.connectors.files.walk import Wanted
from penstock.connectors.formats.markdown import LONGEST_FRONT, front_matter
from penstock.connectors.formats.parsed import Parsed, clean
from penstock.connectors.obsidian import graph
from penstock.connectors.obsidian.documents import (
    CANVAS,
    has_links,
    is_note,
    parsed_canvas,
    parsed_note,
)
from penstock.connectors.obsidian.notes import aliases_of
from penstock.connectors.obsidian.resolution import Resolution, has_stamp, known_pages
from penstock.connectors.obsidian.vault import Vault
from penstock.connectors.target import Recognised
from penstock.counting import count
from penstock.http.charset import decoded
from penstock.jobs.failures import Transient
from penstock.jobs.outcome import Skip
from penstock.settings.declaration import Usual, about

if TYPE_CHECKING:
    from penstock.connectors.target import Target
    from penstock.pipeline.context import Context

NAMES = "names"
# What Obsidian keeps for itself, and what was thrown away.
NEVER = (".obsidian/", ".trash/")
# Of notes with aliases that are remembered between two runs; with more, the notes are looked at again.
MOST_ALIASES = 10_000


class ObsidianKeys(FilesKeys, frozen=True, kw_only=True):
    """A vault."""

    folder: Annotated[
        str, about("folder of the vault, which has `.obsidian/` in it; relative to penstock.yaml")
    ]
    graph: Annotated[
        bool, about("also save the links between files, as a record for each pair")
    ] = True
    graph_collection: Annotated[
        str | None,
        about("collection that the links are saved in"),
        Usual("the collection of the notes and `-links`"),
    ] = None


class Obsidian(Files):
    """A folder in which files link to each other by name. A note is read again when it changes, and when its
    links lead elsewhere because other files were added, renamed or deleted."""

    name = "obsidian"
    summary = (
        "an Obsidian vault: notes with properties, tags and links, attachments, the link graph"
    )
    Settings = ObsidianKeys
    settings: ObsidianKeys

    async def discover(
        self, ctx: Context, cursors: Mapping[str, Any]
    ) -> AsyncIterator[Item | Checkpoint | Unlisted]:
        """Every file, and for notes the files that their links lead to.

        Notes are looked into only if they have changed, or if the names of the vault have.
        """
        before = cursors.get(NAMES) or {}
        vault, aliases = await self._vault(ctx, before.get("aliases") if before else None)
        is_same = vault.digest == before.get("names")
        if not is_same:
            # Until the end of this listing nobody may rely on what was remembered.
            yield Checkpoint({"names": "", "aliases": {}}, NAMES, ordered=False)
        resolution = Resolution(ctx, vault, is_same, self.bytes_or_nothing)
        async for found in self._listed(ctx, resolution.complete):
            yield found
        if resolution.unresolved:
            links = count(resolution.unresolved, "link")
            ctx.note(f"{links} of the notes that are read lead to no file")
        if not is_same and landed_files(ctx) is None:
            is_kept = len(aliases) <= MOST_ALIASES
            names = {"names": vault.digest, "aliases": aliases} if is_kept else {"names": "-"}
            yield Checkpoint(names, NAMES, ordered=False)

    async def _vault(
        self, ctx: Context, before: dict[str, list[str]] | None
    ) -> tuple[Vault, dict[str, list[str]]]:
        """All names, also of files that are not read; aliases of notes that did not change are remembered."""
        vault, aliases = Vault(), {}
        everything = Wanted(
            Globs(()), Globs(NEVER), (), self.settings.hidden, self.settings.symlinks
        )
        async for batch in self._batches(ctx, everything):
            items = [self._item(found, ctx.now()) for found in batch if not found.problem]
            for item in items:
                vault.add(item.key)
            notes = [item for item in items if is_note(item.key)]
            for key, names in (await self._aliases(ctx, notes, before)).items():
                aliases[key] = names
                vault.add_aliases(key, names)
        return vault, aliases

    async def _aliases(
        self, ctx: Context, notes: list[Item], before: dict[str, list[str]] | None
    ) -> dict[str, list[str]]:
        known = {} if before is None else await known_pages(ctx, notes)
        changed = [each for each in notes if not has_stamp(each, known.get(each.address))]
        found = dict(before or {})
        for note in changed:
            found.pop(note.key, None)
        found.update(await ctx.in_thread(lambda: self._read_aliases(changed)))
        return {note.key: found[note.key] for note in notes if found.get(note.key)}

    def _read_aliases(self, notes: list[Item]) -> dict[str, list[str]]:
        found = {}
        for note in notes:
            start = self.bytes_or_nothing(note)[:LONGEST_FRONT]
            front, _ = front_matter(clean(decoded(start, "")))
            found[note.key] = aliases_of(front)
        return found

    def bytes_or_nothing(self, item: Item) -> bytes:
        """Nothing if it can't be read now: whoever reads it will say so."""
        try:
            return self._bytes(item)
        except (Gone, Skip, Transient, OSError):
            return b""

    def _parsed(self, item: Item, name: str, body: bytes) -> Parsed:
        if is_note(name):
            return parsed_note(item, body)
        if name.lower().endswith(CANVAS):
            return parsed_canvas(item, body)
        return super()._parsed(item, name, body)

    async def read(self, ctx: Context, item: Item) -> AsyncIterator[Document]:
        async for document in super().read(ctx, item):
            yield document
            if self.settings.graph:
                links = document.meta.get("links", []) if has_links(item.key) else []
                await graph.save_edges(ctx, self._graph, item.key, links)

    async def deleted(self, ctx: Context, item: Item) -> None:
        if self.settings.graph:
            await graph.save_edges(ctx, self._graph, item.key, [])

    @property
    def _graph(self) -> str:
        collection = self.settings.collection or self.place.source
        return self.settings.graph_collection or f"{collection}-links"

    def _wanted(self) -> Wanted:
        # The last pattern that fits decides, so no pattern of the source brings these back.
        wanted = super()._wanted()
        return replace(wanted, exclude=Globs((*self.settings.exclude, *NEVER)))

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """A folder that Obsidian has opened as a vault."""
        path = target.path
        if path is None or not (path / ".obsidian").is_dir():
            return None
        keys = {"folder": target.written(path)}
        return Recognised(keys=keys, why="an Obsidian vault", name=path.name, fit=60)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"folder": "./vault"}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        for name, text in DEMO.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Sample("demo-vault", {"folder": f"./{folder.name}"})


DEMO = {
    ".obsidian/app.json": "{}\n",
    "Index.md": (
        "---\ntags: [start]\naliases: [Home]\n---\n"
        "See [[Wheel]], [[Flour#Grades|grades]] and ![[wheel.svg]].\n"
    ),
    "mill/Wheel.md": "# Wheel\n\nTurns the stones. #mill/water\nBack to [[Home]]. It was repaired. ^repair\n",
    "mill/Flour.md": "# Grades\n\n[The repair](Wheel.md#^repair) and [[Sieve]], not written yet.\n",
    "media/wheel.svg": '<svg xmlns="http://www.w3.org/2000/svg"><circle r="9"/></svg>\n',
}
