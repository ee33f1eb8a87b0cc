"""The connector `dump`."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.contract import Connector, Document, Item, Sample
from penstock.connectors.dump.chain import Chain, manifest
from penstock.connectors.dump.columns import told
from penstock.connectors.dump.keys import DumpKeys
from penstock.connectors.dump.parts import FileChanged, Part
from penstock.connectors.dump.remote import (
    FIRST_BLOCK,
    HTTP,
    LARGEST_BLOCK,
    Block,
    RemoteFile,
    fetch_block,
    look_at_file,
    next_size,
)
from penstock.connectors.dump.rows import Row, key_of_row, rows_of
from penstock.connectors.dump.streams import compression_of
from penstock.connectors.dump.walk import TEXTS, Dialect, OpenWalks, Reading, Walk, format_of
from penstock.connectors.files import paths
from penstock.connectors.files.connector import SETTLED_S
from penstock.connectors.formats.parsed import clean, one_line
from penstock.connectors.target import Recognised
from penstock.counting import count
from penstock.http.folder import matching
from penstock.jobs.failures import BadData, Permanent, Transient
from penstock.pipeline.context import Captured
from penstock.pipeline.step import UNBOUNDED

if TYPE_CHECKING:
    from penstock.connectors.target import Target
    from penstock.pipeline.context import Context

# A smaller table is one document of the connector `files`.
LARGE = 16_000_000
DOCUMENTS = ("csv", "jsonl", "xml", "parquet")
PART = "x-penstock-part"
MOST_REJECTED = 100
# A file that changes while it is read is begun again so often; then it is left to the next run.
MOST_RESTARTS = 3
_walks = OpenWalks()


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
        if self._is_remote:
            self._check_remote()
            yield self._item(ctx, self._remote_name, await self._seen(ctx))
            return
        found = await ctx.in_thread(self._files)
        if not found:
            raise Permanent(f"there is no file {self.settings.path}", cause="no file")
        for file in found:
            yield self._item(ctx, self._name(file), Chain(stamp=stamp_of(file)))

    def bounds(self) -> tuple[int, int]:
        return UNBOUNDED, UNBOUNDED

    def key_of(self, address: str) -> str:
        return address.removeprefix(f"dump://{self.place.source}/")

    async def read(self, ctx: Context, item: Item) -> AsyncIterator[Document | Item]:
        chain = msgspec.convert(item.about, Chain)
        if chain.is_end:
            yield await self._end(ctx, item, chain)
            return
        name = self.key_of(item.address)
        part = await self._brought(ctx, item, chain)
        if isinstance(part, Chain):
            yield self._item(ctx, name, part)
            return
        if part is None:
            return
        for note in part.notes:
            ctx.note(note)
        columns = chain.columns if part.name == chain.table else []
        rows, columns = await ctx.in_thread(
            lambda: rows_of(part, chain.at, columns, self.settings.header)
        )
        following = chain.after(part, columns)
        for document in self._documents(ctx, part, rows, following):
            yield document
        if part.encoding == "cp1252" and chain.at.row == 1 and not self.settings.encoding:
            ctx.note(
                f"{part.name} is no UTF-8 and is read as Windows-1252; `encoding` names another"
            )
        yield self._item(ctx, name, following)

    async def _brought(self, ctx: Context, item: Item, chain: Chain) -> Part | Chain | None:
        """The part; or where to go on instead, if it can't be had; or nothing."""
        try:
            if not self._is_remote:
                return await self._part(ctx, item, chain, self._file(item))
            if chain.remote is None:
                seen = await self._seen(ctx)
                return msgspec.structs.replace(seen, restarts=chain.restarts)
            return await self._remote_part(ctx, chain, chain.remote)
        except FileChanged:
            return self._restarted(ctx, item, chain)

    async def _seen(self, ctx: Context) -> Chain:
        found = await look_at_file(ctx, self.settings.path)
        return Chain(stamp=found.stamp, remote=found, block=FIRST_BLOCK)

    async def _remote_part(self, ctx: Context, chain: Chain, file: RemoteFile) -> Part | Chain:
        """A part of a file on a server; or the same place with more bytes, if they hold no whole row."""
        keys, at, name = self.settings, chain.at, self._remote_name
        kind = keys.format or format_of(name)
        if not file.size:
            return Part(b"", kind, name)
        body = await fetch_block(ctx, keys.path, file, at.offset, chain.block)
        found = (chain.delimiter, chain.encoding) if at.offset else (keys.delimiter, keys.encoding)
        is_last = at.offset + len(body) >= file.size
        block = Block(body, is_last, name, kind, found[0] or "", found[1] or "")
        part = await ctx.in_thread(lambda: block.part(at, keys.header))
        if part is not None:
            return part
        if chain.block >= LARGEST_BLOCK:
            raise BadData(f"line {at.line}: a row of more than {LARGEST_BLOCK:,} bytes")
        return msgspec.structs.replace(chain, block=next_size(0, chain.block))

    def _check_remote(self) -> None:
        name = self._remote_name
        kind = self.settings.format or format_of(name)
        if kind not in TEXTS or compression_of(name):
            raise Permanent(
                "from a server only plain CSV and JSON lines are read: download the file, and name its path",
                cause="not read from servers",
            )

    @property
    def _is_remote(self) -> bool:
        return self.settings.path.lower().startswith(HTTP)

    @property
    def _remote_name(self) -> str:
        """The address without its query, which may hold a secret."""
        return self.settings.path.partition("#")[0].partition("?")[0]

    async def _part(self, ctx: Context, item: Item, chain: Chain, file: Path) -> Part:
        """A part as it is stored, before anything is made of it."""

        async def bring() -> Captured:
            part = await ctx.in_thread(lambda: self._read_part(file, item, chain))
            about = msgspec.structs.replace(part, body=b"")
            return Captured(part.body, {PART: msgspec.json.encode(about).decode()})

        where = f"{item.address}#{chain.at.table}:{chain.at.row}"
        response = await ctx.capture(where, bring, is_page=False)
        part = msgspec.json.decode(response.headers[PART], type=Part)
        return msgspec.structs.replace(part, body=response.body)

    def _read_part(self, file: Path, item: Item, chain: Chain) -> Part:
        if stamp_of(file) != chain.stamp:
            raise FileChanged
        name = self.key_of(item.address)
        walk = _walks.take(file, chain.stamp, chain.at)
        if walk is None:
            dialect = Dialect(chain.delimiter, chain.encoding)
            walk = Walk(file, name, self._reading, chain.at, dialect)
        part = walk.part()
        # Looked at again: what was read must be of one and the same file.
        if stamp_of(file) != chain.stamp:
            walk.close()
            raise FileChanged
        if part.next is None:
            walk.close()
        else:
            _walks.give(file, chain.stamp, walk)
        return part

    def _documents(self, ctx: Context, part: Part, rows: list[Row], chain: Chain) -> list[Document]:
        report = chain.report(part.name)
        documents, rejected = [], []
        for row in rows:
            problem = row.problem
            key = "" if problem else key_of_row(row, self.settings.key, part.name)
            if not key:
                problem = problem or f"no value in {', '.join(self.settings.key)}, which is its key"
                rejected.append(f"{part.name}, line {row.line}: {problem}")
                continue
            report.add(row.data)
            documents.append(self._document(key, row))
        report.rejected += len(rejected)
        for reason in rejected[:MOST_REJECTED]:
            ctx.reject(reason, code="bad_row")
        if len(rejected) > MOST_REJECTED:
            more = count(len(rejected) - MOST_REJECTED, "row")
            ctx.reject(f"{part.name}: {more} more of the same part", code="bad_row")
        return documents

    def _document(self, key: str, row: Row) -> Document:
        keys = self.settings
        title = row.data.get(keys.title) if keys.title else ""
        text = row.data.get(keys.text) if keys.text else ""
        return Document(
            key=key,
            kind="row",
            title=one_line(str(title or "")),
            text=clean(str(text or "")),
            data=row.data,
        )

    def _restarted(self, ctx: Context, item: Item, chain: Chain) -> Chain | None:
        name = self.key_of(item.address)
        if chain.restarts >= MOST_RESTARTS:
            ctx.note(f"{name} keeps changing while it is read; the next run reads it again")
            return None
        ctx.note(f"{name} has changed while it was read, and is read from its start again")
        stamp = "" if self._is_remote else stamp_of(self._file(item))
        return Chain(stamp=stamp, restarts=chain.restarts + 1)

    async def _end(self, ctx: Context, item: Item, chain: Chain) -> Document:
        """The file is read: from now on it is known, and what is known of it is a document."""

        async def bring() -> Captured:
            return Captured(manifest(chain))

        response = await ctx.capture(item.address, bring, "application/json")
        found = msgspec.json.decode(response.body)
        name = self.key_of(item.address)
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
        if self._is_remote:
            return chain.remote is not None and chain.remote.is_recognisable
        return ctx.now() - changed_at(chain.stamp) > SETTLED_S

    @property
    def _reading(self) -> Reading:
        keys = self.settings
        return Reading(
            keys.format or "",
            keys.delimiter or "",
            keys.encoding or "",
            keys.members,
            keys.header,
            keys.element or "",
            keys.max_bytes,
        )

    def _files(self) -> list[Path]:
        path = self.settings.path
        whole = os.path.normpath(self.place.root / Path(path).expanduser())
        if not any(sign in path for sign in "*?["):
            return [Path(whole)]
        return [Path(found) for found in matching([whole])]

    def _name(self, file: Path) -> str:
        root = os.path.normpath(self.place.root)
        name = os.path.relpath(file, root) if file.is_relative_to(root) else str(file)
        return paths.key_of(name)

    def _file(self, item: Item) -> Path:
        return self.place.root / paths.path_of(self.key_of(item.address))

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """A table or archive that is packed, or too large to be a single document."""
        path = target.path
        if target.url and target.response is None:
            name = target.url.partition("#")[0].partition("?")[0]
            if format_of(name) not in TEXTS or compression_of(name):
                return None
            stem = name.rpartition("/")[2].partition(".")[0]
            return Recognised(keys={"path": target.url}, why="a table", name=stem, fit=60)
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


def stamp_of(file: Path) -> str:
    """The size and the times of a regular file."""
    try:
        found = os.stat(file)
    except FileNotFoundError:
        raise Permanent(f"there is no file {file.name}", cause="no file") from None
    except OSError as error:
        if isinstance(error, PermissionError):
            raise
        raise Transient(f"{file.name}: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise BadData(f"{file.name} is no regular file", cause="no file")
    return f"{found.st_size}.{found.st_mtime_ns:x}.{found.st_ctime_ns:x}"


def changed_at(stamp: str) -> float:
    return max(int(each, 16) for each in stamp.split(".")[1:3]) / 1e9


DEMO = """\
id,customer,ordered,total
1,Ada,2026-11-02,12.50
2,Grace,2026-11-02,3
3,"Lin, the miller",2026-11-03,
"""
