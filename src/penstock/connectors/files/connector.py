"""The connector `files`."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from penstock.connectors.contract import (
    Checkpoint,
    Connector,
    Document,
    Gone,
    Item,
    Sample,
    Unlisted,
)
from penstock.connectors.files import paths
from penstock.connectors.files.documents import document_of_file
from penstock.connectors.files.file_reader import read_file
from penstock.connectors.files.globs import Globs
from penstock.connectors.files.walk import Found, Symlinks, Wanted, walk
from penstock.connectors.formats.kinds import content_type_of, kind_of, parse
from penstock.connectors.formats.parsed import Parsed
from penstock.connectors.target import Recognised
from penstock.counting import count
from penstock.errors import ConfigError
from penstock.jobs.failures import AuthFailed, Permanent, Transient
from penstock.jobs.outcome import Skip
from penstock.jobs.signals import FILE_LANDED
from penstock.pipeline.context import Captured
from penstock.settings.connector import ConnectorKeys
from penstock.settings.declaration import Reads, Usual, about
from penstock.settings.document import Entry
from penstock.settings.kinds import Size, read_names, texts_schema
from penstock.settings.section import read_text

if TYPE_CHECKING:
    from penstock.connectors.target import Target
    from penstock.pipeline.context import Context

Complete = Callable[[list[Item]], Awaitable[list[Item]]]
SLICE = 500
# Clocks of file systems tick: a file that was changed so shortly before may change again unseen.
SETTLED_S = 2.0


def _read_pattern(entry: Entry, path: str) -> str:
    pattern = read_text(entry, path)
    try:
        Globs([pattern])
    except ConfigError as error:
        raise entry.error(path, error.message) from None
    return pattern


def read_patterns(entry: Entry, path: str) -> tuple[str, ...]:
    """A list of patterns of paths."""
    found: tuple[str, ...] = read_names(entry, path, "patterns", _read_pattern)
    return found


def _read_file_names(entry: Entry, path: str) -> tuple[str, ...]:
    found: tuple[str, ...] = read_names(entry, path, "names of files", read_text)
    return found


class FilesKeys(ConnectorKeys, frozen=True, kw_only=True):
    """A folder of files."""

    folder: Annotated[str, about("the folder, relative to penstock.yaml")]
    include: Annotated[
        tuple[str, ...],
        Reads(read_patterns, texts_schema),
        about('files to read, such as `["*.md", "reports/**"]`, in the syntax of ignore files'),
        Usual("all"),
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        Reads(read_patterns, texts_schema),
        about("files and folders that are left out, in the same syntax"),
        Usual("none"),
    ] = ()
    ignore_files: Annotated[
        tuple[str, ...],
        Reads(_read_file_names, texts_schema),
        about("names of ignore files, which apply to the folder that they lie in"),
    ] = (".gitignore", ".penstockignore")
    hidden: Annotated[bool, about("also read files and folders whose name begins with a dot")] = (
        False
    )
    symlinks: Annotated[
        Symlinks,
        about(
            "`skip`; `inside` follows links that lead to files below the folder; `follow` follows all, "
            "which lets whoever can write into the folder have any file read"
        ),
    ] = "skip"
    max_bytes: Annotated[Size, about("larger files are left out; the run notes how many")] = (
        16_000_000
    )


class Files(Connector[FilesKeys]):
    """A folder, as it is. A file is recognised as changed by its size and times, and read then."""

    name = "files"
    summary = "files in a folder: text, Markdown, HTML, CSV, JSON, mail, Office, PDF, Parquet"
    Settings = FilesKeys
    deletions = "absent"
    finds_renames = True
    # A turn writes what all of them have read: with few of them, the disk is waited for more often.
    concurrency = 32
    errors = {"auth": (PermissionError,)}  # noqa: RUF012

    async def discover(
        self, ctx: Context, cursors: Mapping[str, Any]
    ) -> AsyncIterator[Item | Checkpoint | Unlisted]:
        """Every file that is meant; in a run that landed files have started, these alone."""
        async for found in self._listed(ctx, _as_they_are):
            yield found

    async def _listed(self, ctx: Context, complete: Complete) -> AsyncIterator[Item | Unlisted]:
        """The files that are meant, batch by batch, each item as `complete` answers it."""
        landed = landed_files(ctx)
        too_large = 0
        async for batch in self._batches(ctx, self._wanted()):
            items: list[Item] = []
            for found in batch:
                if found.problem:
                    yield Unlisted(self._address(found.path), found.problem)
                elif found.size > self.settings.max_bytes:
                    too_large += 1
                elif paths.is_too_long(address := self._address(found.path)):
                    yield Unlisted(address[:200], "its path is too long")
                elif landed is None or str(self._root / found.path) in landed:
                    items.append(self._item(found, ctx.now()))
            for item in await complete(items):
                yield item
        if landed is not None:
            yield Unlisted(
                paths.prefix_of(self.place.source), "this run is about the files that landed"
            )
        if too_large:
            words = count(too_large, "file")
            ctx.note(f"{words} larger than max_bytes ({self.settings.max_bytes:,}) left out")

    async def _batches(self, ctx: Context, wanted: Wanted) -> AsyncIterator[list[Found]]:
        walked = walk(self._root, wanted)
        while batch := await ctx.in_thread(lambda: self._next(walked)):
            yield batch

    def _next(self, walked: Any) -> list[Found]:
        try:
            return list(islice(walked, SLICE))
        except PermissionError:
            raise AuthFailed(f"the folder {self.settings.folder} may not be read") from None
        except FileNotFoundError:
            raise Permanent(
                f"there is no folder {self.settings.folder}", cause="no folder"
            ) from None
        except NotADirectoryError:
            raise Permanent(f"{self.settings.folder} is not a folder", cause="no folder") from None
        except OSError as error:
            raise Transient(f"the folder {self.settings.folder}: {error.strerror}") from None

    def _item(self, found: Found, now: float) -> Item:
        is_settled = now - found.changed_at > SETTLED_S
        address = self._address(found.path)
        return Item(paths.key_of(found.path), address, found.stamp if is_settled else "")

    async def read(self, ctx: Context, item: Item) -> AsyncIterator[Document]:
        name = item.key.rpartition("/")[2]

        async def bring() -> Captured:
            return Captured(await ctx.in_thread(lambda: self._bytes(item)))

        is_anew = bool(item.about.get("anew"))
        response = await ctx.capture(item.address, bring, content_type_of(name), anew=is_anew)
        yield await document_of_file(
            ctx, item.key, response, lambda name, body: self._parsed(item, name, body)
        )

    def _parsed(self, item: Item, name: str, body: bytes) -> Parsed:
        return parse(kind_of(name, body), body, name=name)

    async def digest(self, ctx: Context, item: Item) -> str:
        try:
            body = await ctx.in_thread(lambda: self._bytes(item))
        except (Gone, Skip, Transient, OSError):
            return ""
        return hashlib.sha256(body).hexdigest()

    def _bytes(self, item: Item) -> bytes:
        path = paths.path_of(item.key)
        return read_file(self._root, path, self.settings.max_bytes, self.settings.symlinks)

    def key_of(self, address: str) -> str:
        return address.removeprefix(paths.prefix_of(self.place.source))

    def _address(self, path: str) -> str:
        return paths.prefix_of(self.place.source) + paths.key_of(path)

    @property
    def _root(self) -> Path:
        return self.place.root / Path(self.settings.folder).expanduser()

    def _wanted(self) -> Wanted:
        keys = self.settings
        return Wanted(
            Globs(keys.include), Globs(keys.exclude), keys.ignore_files, keys.hidden, keys.symlinks
        )

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """Any folder, and any file, which is all that is read of its folder."""
        path = target.path
        if path is None:
            return None
        if path.is_dir():
            keys: dict[str, Any] = {"folder": target.written(path)}
            return Recognised(keys=keys, why="a folder", name=path.name, fit=10)
        keys = {"folder": target.written(path.parent), "include": [f"/{path.name}"]}
        return Recognised(keys=keys, why="a file", name=path.stem, fit=10)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"folder": "./notes"}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        texts = {
            "welcome.md": "---\ntags: [demo]\n---\n# Welcome\n\nThis note was read by [Penstock](https://example.com).\n",
            "prices.csv": "name,price\ntea,2.50\ncoffee,3.20\n",
            "ideas/garden.txt": "Plant the beans in May.\n",
        }
        for name, text in texts.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Sample("demo-files", {"folder": f"./{folder.name}"})


async def _as_they_are(items: list[Item]) -> list[Item]:
    return items


def landed_files(ctx: Context) -> set[str] | None:
    """The files that this run is about; None if it is about the whole folder."""
    signal = ctx.run.signal
    if signal is None or signal.name != FILE_LANDED:
        return None
    return set(signal.data["files"])
