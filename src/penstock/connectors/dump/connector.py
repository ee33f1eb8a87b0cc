"""The connector `dump`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.contract import (
    Checkpoint,
    Connector,
    Document,
    Item,
    Sample,
    Tombstone,
)
from penstock.connectors.dump.chain import Chain, Swept, manifest
from penstock.connectors.dump.columns import told
from penstock.connectors.dump.keys import DumpKeys
from penstock.connectors.dump.parts import FileChanged, Part, Position
from penstock.connectors.dump.places import is_bucket, is_remote, objects_of
from penstock.connectors.dump.reader import Reader, stamp_of
from penstock.connectors.dump.rows import Row, key_of_row, require_fields, rows_of
from penstock.connectors.dump.streams import compression_of
from penstock.connectors.dump.vanished import own_records, sweep
from penstock.connectors.dump.walk import format_of
from penstock.connectors.files import paths
from penstock.connectors.files.connector import SETTLED_S
from penstock.connectors.formats.parsed import clean, one_line
from penstock.connectors.target import Recognised
from penstock.counting import count
from penstock.http.folder import matching
from penstock.jobs.failures import Permanent
from penstock.pipeline.context import Captured
from penstock.pipeline.step import UNBOUNDED
from penstock.settings.pattern import WILD

if TYPE_CHECKING:
    from penstock.connectors.target import Target
    from penstock.pipeline.context import Context

# A smaller table is one document of the connector `files`.
LARGE = 16_000_000
DOCUMENTS = ("csv", "jsonl", "xml", "parquet")
MOST_REJECTED = 100
# A file that changes while it is read is begun again so often; then it is left to the next run.
MOST_RESTARTS = 3
OPEN = "ends_open"


class Dump(Connector[DumpKeys]):
    """A file of any size, in parts of whole rows, each a job: what is read of it before a worker dies stays.

    The part that was read names the one after it, so that a part is where the one before it ends, whatever is
    quoted or packed in it. Only when the last one is done the file counts as read.
    """

    name = "dump"
    summary = "large tables and archives: CSV, JSON lines, XML, Parquet, SQLite, gz, zst, zip, tar"
    Settings = DumpKeys
    deletions = "never"
    timeout = "30m"
    concurrency = 2
    errors = {"auth": (PermissionError,)}  # noqa: RUF012

    async def discover(self, ctx: Context, cursors: Mapping[str, Any]) -> AsyncIterator[Item]:
        """The files, each by its size and times, or by what its server says of it."""
        names = await self._names(ctx)
        if not names:
            raise Permanent(f"there is no file {self.settings.path}", cause="no file")
        is_known = bool(self.settings.key and await own_records(ctx, self._collection, "", 1))
        for name in names:
            if self._reader.is_remote:
                chain = await self._reader.seen(ctx, name)
            else:
                chain = Chain(stamp=stamp_of(self._reader.local_file(name)))
            was_open = bool((cursors.get(name) or {}).get(OPEN))
            chain = msgspec.structs.replace(chain, is_known=is_known, was_open=was_open)
            yield self._item(ctx, name, chain)

    async def _names(self, ctx: Context) -> list[str]:
        path = self.settings.path
        if is_bucket(path):
            return await objects_of(ctx, path)
        if is_remote(path):
            # The address without its query, which may hold a secret.
            return [path.partition("#")[0].partition("?")[0]]
        return [self._name(file) for file in await ctx.in_thread(self._files)]

    def bounds(self) -> tuple[int, int]:
        return UNBOUNDED, UNBOUNDED

    def key_of(self, address: str) -> str:
        return address.removeprefix(f"dump://{self.place.source}/")

    async def read(
        self, ctx: Context, item: Item
    ) -> AsyncIterator[Document | Tombstone | Item | Checkpoint]:
        chain = msgspec.convert(item.about, Chain)
        name = self.key_of(item.address)
        try:
            if chain.is_end:
                yield await self._end(ctx, item, chain)
                if chain.is_open != chain.was_open:
                    yield Checkpoint({OPEN: chain.is_open}, name, ordered=False)
                return
            if chain.is_sweep:
                async for found in self._vanished(ctx, item, chain):
                    yield found
                return
            part = await self._reader.part(ctx, item, name, chain)
        except FileChanged:
            if (again := self._restarted(ctx, name, chain)) is not None:
                yield self._item(ctx, name, again)
            return
        if isinstance(part, Chain):
            yield self._item(ctx, name, part)
            return
        for note in part.notes:
            ctx.note(note)
        columns = chain.columns if part.name == chain.table else []
        rows, columns = await ctx.in_thread(
            lambda: rows_of(part, chain.at, columns, self.settings.header)
        )
        if chain.at == Position() and part.name == name:
            require_fields(name, rows, self.settings.key)
        following = chain.after(part, columns, has_keys=bool(self.settings.key))
        for document in self._documents(ctx, name, part, rows, following):
            yield document
        if part.encoding == "cp1252" and chain.at.row == 1 and not self.settings.encoding:
            ctx.note(
                f"{part.name} is no UTF-8 and is read as Windows-1252; `encoding` names another"
            )
        yield self._item(ctx, name, following)

    async def _vanished(
        self, ctx: Context, item: Item, chain: Chain
    ) -> AsyncIterator[Tombstone | Item]:
        """Records whose rows this version of the file has not, and where to go on."""
        name = self.key_of(item.address)

        async def bring() -> Captured:
            return Captured(msgspec.json.encode(await self._swept(ctx, name, chain)))

        where = f"{item.address}#{chain.label}"
        response = await ctx.capture(where, bring, is_page=False, counted=False)
        found = msgspec.json.decode(response.body, type=Swept)
        if found.instead is not None:
            yield self._item(ctx, name, found.instead)
            return
        for key in found.gone:
            yield Tombstone(key)
        yield self._item(ctx, name, chain.after_sweep(found.after))

    async def _swept(self, ctx: Context, name: str, chain: Chain) -> Swept:
        """Nothing, where a row that is missing may be one that could not be read."""
        if why := _doubt(chain):
            ctx.note(f"{name}: {why}, so that nothing of what was read before is deleted")
            return Swept()
        keys = await self._reader.key_set(ctx, name, chain)
        if isinstance(keys, Chain):
            return Swept(instead=keys)
        owner = self._owner(name)
        return Swept(*await sweep(ctx, self._collection, chain.swept, owner, keys))

    @property
    def _collection(self) -> str:
        return self.settings.collection or self.place.source

    def _owner(self, name: str) -> str:
        """By what a record is known to be of this file, where there may be others."""
        return name if any(sign in self.settings.path for sign in WILD) else ""

    def _documents(
        self, ctx: Context, name: str, part: Part, rows: list[Row], chain: Chain
    ) -> list[Document]:
        report = chain.report(part.name)
        documents, rejected = [], []
        owner = self._owner(name) if self.settings.key else ""
        for row in rows:
            problem = row.problem
            key = "" if problem else key_of_row(row, self.settings.key, part.name)
            if not key:
                problem = problem or f"no value in {', '.join(self.settings.key)}, which is its key"
                rejected.append(f"{part.name}, line {row.line}: {problem}")
                continue
            report.add(row.data)
            documents.append(self._document(key, row, owner))
        report.rejected += len(rejected)
        for reason in rejected[:MOST_REJECTED]:
            ctx.reject(reason, code="bad_row")
        if len(rejected) > MOST_REJECTED:
            more = count(len(rejected) - MOST_REJECTED, "row")
            ctx.reject(f"{part.name}: {more} more of the same part", code="bad_row")
        return documents

    def _document(self, key: str, row: Row, owner: str) -> Document:
        keys = self.settings
        title = row.data.get(keys.title) if keys.title else ""
        text = row.data.get(keys.text) if keys.text else ""
        return Document(
            key=key,
            kind="row",
            title=one_line(str(title or "")),
            text=clean(str(text or "")),
            meta={"file": owner} if owner else {},
            data=row.data,
        )

    def _restarted(self, ctx: Context, name: str, chain: Chain) -> Chain | None:
        if chain.restarts >= MOST_RESTARTS:
            ctx.note(f"{name} keeps changing while it is read; the next run reads it again")
            return None
        ctx.note(f"{name} has changed while it was read, and is read from its start again")
        stamp = "" if self._reader.is_remote else stamp_of(self._reader.local_file(name))
        # Rows of the state that was begun may be saved already.
        return Chain(
            stamp=stamp, restarts=chain.restarts + 1, is_known=True, was_open=chain.was_open
        )

    async def _end(self, ctx: Context, item: Item, chain: Chain) -> Document:
        """The file is read: from now on it is known, and what is known of it is a document."""

        name = self.key_of(item.address)

        async def bring() -> Captured:
            await ctx.in_thread(lambda: self._reader.forget(name, chain))
            return Captured(manifest(chain))

        response = await ctx.capture(item.address, bring, "application/json")
        found = msgspec.json.decode(response.body)
        for table, report in chain.reports.items():
            ctx.note(told(table, report))
        return Document(
            key=name,
            kind="table",
            title=name,
            meta={"bytes": int(chain.stamp.partition(".")[0]), **found["meta"]},
            data=found["tables"],
            fingerprint=hashlib.sha256(msgspec.json.encode(found["tables"])).hexdigest(),
        )

    def _item(self, ctx: Context, name: str, chain: Chain) -> Item:
        key = name if chain.is_start else f"{name} {chain.label}"
        return Item(
            key,
            f"dump://{self.place.source}/{name}",
            chain.stamp if self._is_settled(ctx, chain) else "",
            about=msgspec.to_builtins(chain),
        )

    def _is_settled(self, ctx: Context, chain: Chain) -> bool:
        """Whether another state of the file would have another stamp."""
        if self._reader.is_remote:
            return chain.remote is not None and chain.remote.is_recognisable
        return ctx.now() - changed_at(chain.stamp) > SETTLED_S

    @property
    def _reader(self) -> Reader:
        return Reader(self.settings, self.place)

    def _files(self) -> list[Path]:
        path = self.settings.path
        whole = os.path.normpath(self.place.root / Path(path).expanduser())
        if not any(sign in path for sign in WILD):
            return [Path(whole)]
        return [Path(found) for found in matching([whole])]

    def _name(self, file: Path) -> str:
        root = os.path.normpath(self.place.root)
        name = os.path.relpath(file, root) if file.is_relative_to(root) else str(file)
        return paths.key_of(name)

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """A table or archive that is packed, or too large to be a single document."""
        path = target.path
        if is_bucket(target.text) or (target.url and target.response is None):
            return _recognised(target.text if is_bucket(target.text) else str(target.url))
        if path is None or not path.is_file() or not format_of(path.name):
            return None
        is_packed = format_of(path.name) not in DOCUMENTS or compression_of(path.name)
        if not is_packed and path.stat().st_size <= LARGE:
            return None
        keys = {"path": target.written(path)}
        name = path.name.partition(".")[0]
        return Recognised(keys=keys, why="a large table or archive", name=name, fit=60)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"path": "./orders.csv.gz", "key": "id"}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "orders.csv").write_text(DEMO, encoding="utf-8")
        return Sample("demo-dump", {"path": f"./{folder.name}/orders.csv", "key": "id"})


def _recognised(address: str) -> Recognised | None:
    """A table or archive by its name. XML is more often a feed or a sitemap, packed or not."""
    name = address.partition("#")[0].partition("?")[0]
    if format_of(name) in ("", "xml") and not (format_of(name) and is_bucket(address)):
        return None
    stem = name.rpartition("/")[2].partition(".")[0].strip("*") or "dump"
    return Recognised(keys={"path": address}, why="a table", name=stem, fit=60)


def _doubt(chain: Chain) -> str:
    """Why rows that are missing may not be gone; empty if nothing speaks against it."""
    if chain.rejected:
        return f"{count(chain.rejected, 'row')} rejected"
    if not chain.rows:
        return "no rows"
    if chain.is_open and not chain.was_open:
        return "its last line or its archive has no end, as it had before: it may be cut short"
    return ""


def changed_at(stamp: str) -> float:
    return max(int(each, 16) for each in stamp.split(".")[1:3]) / 1e9


DEMO = """\
id,customer,ordered,total
1,Ada,2026-11-02,12.50
2,Grace,2026-11-02,3
3,"Lin, the miller",2026-11-03,
"""
