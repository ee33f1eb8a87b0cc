"""The connector `dump`."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from penstock.connectors.contract import Connector, Document, Item, Sample
from penstock.connectors.dump.chain import Chain, manifest
from penstock.connectors.dump.columns import told
from penstock.connectors.dump.parts import Part
from penstock.connectors.dump.rows import Row, key_of_row, rows_of
from penstock.connectors.dump.streams import compression_of
from penstock.connectors.dump.walk import Dialect, OpenWalks, Reading, Walk, format_of
from penstock.connectors.files import paths
from penstock.connectors.files.connector import SETTLED_S, read_patterns
from penstock.connectors.formats.parsed import clean, one_line
from penstock.connectors.target import Recognised
from penstock.counting import count
from penstock.http.folder import matching
from penstock.jobs.failures import BadData, Permanent, Transient
from penstock.pipeline.context import Captured
from penstock.pipeline.step import UNBOUNDED
from penstock.settings.connector import ConnectorKeys
from penstock.settings.declaration import Reads, Usual, about
from penstock.settings.document import Entry
from penstock.settings.kinds import Size, one_or_many, read_names, texts_schema
from penstock.settings.section import read_text

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


def _read_fields(entry: Entry, path: str) -> tuple[str, ...]:
    if isinstance(entry.value, str):
        return (read_text(entry, path),)
    found: tuple[str, ...] = read_names(entry, path, "columns", read_text)
    return found


def _fields_schema(_: Any) -> dict[str, Any]:
    return one_or_many()


class DumpKeys(ConnectorKeys, frozen=True, kw_only=True):
    """A large file, or several."""

    path: Annotated[
        str, about("the file, relative to penstock.yaml, or a pattern such as `./dumps/*.csv.gz`")
    ]
    key: Annotated[
        tuple[str, ...],
        Reads(_read_fields, _fields_schema),
        about("column or columns that make the key of a record"),
        Usual("the file and the number of the row"),
    ] = ()
    title: Annotated[str | None, about("column with the title of a record"), Usual("none")] = None
    text: Annotated[str | None, about("column with the text of a record"), Usual("none")] = None
    format: Annotated[
        Literal["csv", "jsonl", "xml", "parquet", "sqlite", "zip", "tar"] | None,
        about("`csv`, `jsonl`, `xml`, `parquet`, `sqlite`, `zip` or `tar`"),
        Usual("by the name"),
    ] = None
    delimiter: Annotated[
        str | None, about("what separates the cells of CSV"), Usual("by the first line")
    ] = None
    header: Annotated[bool, about("whether the first line of CSV has the names of columns")] = True
    encoding: Annotated[
        str | None,
        about("encoding of text, such as `latin-1`"),
        Usual("UTF-8, UTF-16 with its mark, else Windows-1252"),
    ] = None
    members: Annotated[
        tuple[str, ...],
        Reads(read_patterns, texts_schema),
        about(
            'files to read of an archive, or tables of a database, such as `["*.csv"]`, in the syntax of '
            "ignore files"
        ),
        Usual("all"),
    ] = ()
    element: Annotated[
        str | None,
        about("name of the XML element that is a row"),
        Usual("the children of the outermost one"),
    ] = None
    max_bytes: Annotated[Size, about("most bytes of a file, unpacked")] = 100_000_000_000


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
        """The files, each by its size and times."""
        found = await ctx.in_thread(self._files)
        if not found:
            raise Permanent(f"there is no file {self.settings.path}", cause="no file")
        for file in found:
            chain = Chain(stamp=stamp_of(file))
            yield self._item(ctx, file, chain)

    def bounds(self) -> tuple[int, int]:
        return UNBOUNDED, UNBOUNDED

    def key_of(self, address: str) -> str:
        return address.removeprefix(f"dump://{self.place.source}/")

    async def read(self, ctx: Context, item: Item) -> AsyncIterator[Document | Item]:
        chain = msgspec.convert(item.about, Chain)
        if chain.is_end:
            yield await self._end(ctx, item, chain)
            return
        file = self._file(item)
        part = await self._part(ctx, item, chain, file)
        if part is None:
            restarted = self._restarted(ctx, item, chain, file)
            if restarted is not None:
                yield restarted
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
        yield self._item(ctx, file, following)

    async def _part(self, ctx: Context, item: Item, chain: Chain, file: Path) -> Part | None:
        """A part as it is stored, before anything is made of it; None if the file is another one by now."""

        async def bring() -> Captured:
            part = await ctx.in_thread(lambda: self._read_part(file, item, chain))
            if part is None:
                raise _Changed
            about = msgspec.structs.replace(part, body=b"")
            return Captured(part.body, {PART: msgspec.json.encode(about).decode()})

        try:
            response = await ctx.capture(
                f"{item.address}#{chain.at.table}:{chain.at.row}", bring, is_page=False
            )
        except _Changed:
            return None
        part = msgspec.json.decode(response.headers[PART], type=Part)
        return msgspec.structs.replace(part, body=response.body)

    def _read_part(self, file: Path, item: Item, chain: Chain) -> Part | None:
        if stamp_of(file) != chain.stamp:
            return None
        name = paths.key_of(self._name(file))
        walk = _walks.take(file, chain.stamp, chain.at)
        if walk is None:
            dialect = Dialect(chain.delimiter, chain.encoding)
            walk = Walk(file, name, self._reading, chain.at, dialect)
        part = walk.part()
        # Looked at again: what was read must be of one and the same file.
        if stamp_of(file) != chain.stamp:
            walk.close()
            return None
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

    def _restarted(self, ctx: Context, item: Item, chain: Chain, file: Path) -> Item | None:
        name = paths.key_of(self._name(file))
        if chain.restarts >= MOST_RESTARTS:
            ctx.note(f"{name} keeps changing while it is read; the next run reads it again")
            return None
        ctx.note(f"{name} has changed while it was read, and is read from its start again")
        return self._item(ctx, file, Chain(stamp=stamp_of(file), restarts=chain.restarts + 1))

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

    def _item(self, ctx: Context, file: Path, chain: Chain) -> Item:
        name = paths.key_of(self._name(file))
        key = name if chain.is_start else f"{name} {chain.label}"
        return Item(
            key,
            f"dump://{self.place.source}/{name}",
            chain.stamp if ctx.now() - changed_at(chain.stamp) > SETTLED_S else "",
            about=msgspec.to_builtins(chain),
        )

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
        return os.path.relpath(file, root) if file.is_relative_to(root) else str(file)

    def _file(self, item: Item) -> Path:
        return self.place.root / paths.path_of(self.key_of(item.address))

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """A table or archive that is packed, or too large to be a single document."""
        path = target.path
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


class _Changed(Exception):
    """The file is another one than when it was begun."""


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
