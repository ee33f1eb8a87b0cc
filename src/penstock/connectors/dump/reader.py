"""How parts of a file are brought: from this machine's disk, by ranges, or by way of a download."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.connectors.contract import Item, Place
from penstock.connectors.dump.chain import Chain
from penstock.connectors.dump.downloads import Download
from penstock.connectors.dump.keys import DumpKeys
from penstock.connectors.dump.parts import FileChanged, Part
from penstock.connectors.dump.places import Address, BucketObject, RemotePlace, is_bucket, is_remote
from penstock.connectors.dump.remote import (
    FIRST_BLOCK,
    LARGEST_BLOCK,
    Block,
    RemoteFile,
    block_of,
    headers_of,
    look_at_file,
    next_size,
)
from penstock.connectors.dump.streams import compression_of
from penstock.connectors.dump.vanished import KeySet, LastKeySet, keys_of, turns_for
from penstock.connectors.dump.walk import TEXTS, Dialect, OpenWalks, Reading, Walk, format_of
from penstock.connectors.files import paths
from penstock.counting import count
from penstock.jobs.failures import BadData, Permanent, Transient
from penstock.pipeline.context import Captured

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

PART, MORE = "x-penstock-part", "x-penstock-more"
_walks = OpenWalks()
_last_keys = LastKeySet()


class Reader:
    """Reads the files of one source."""

    def __init__(self, keys: DumpKeys, place: Place) -> None:
        self._keys = keys
        self._place = place

    async def part(self, ctx: Context, item: Item, name: str, chain: Chain) -> Part | Chain:
        """The part; or where to go on instead, if it can't be had yet. FileChanged, if the file has."""
        if not self.is_remote:
            return await self._local_part(ctx, item, name, chain)
        if chain.remote is None:
            seen = await self.seen(ctx, name)
            return msgspec.structs.replace(
                seen, restarts=chain.restarts, is_known=chain.is_known, was_open=chain.was_open
            )
        if self._is_by_ranges(name, chain):
            return await self._ranged_part(ctx, name, chain, chain.remote)
        return await self._downloaded_part(ctx, item, name, chain, chain.remote)

    @property
    def is_remote(self) -> bool:
        return is_remote(self._keys.path)

    async def seen(self, ctx: Context, name: str) -> Chain:
        """A file on a server as it is now."""
        if not (self._keys.format or format_of(name)):
            raise BadData(
                f"{name} has no format that is known: name it by `format`", cause="no format"
            )
        found = await look_at_file(ctx, self._remote(name))
        if found.size > self._keys.max_bytes:
            raise BadData(f"{name} has {count(found.size, 'byte')}; raise max_bytes to read it")
        return Chain(stamp=found.stamp, remote=found, block=FIRST_BLOCK)

    async def key_set(self, ctx: Context, name: str, chain: Chain) -> KeySet | Chain:
        """The keys of the file, of the chain's turn; or where to go on instead."""
        turns = turns_for(chain.rows)

        def make() -> KeySet:
            found = KeySet(chain.turn, turns)
            walk = Walk(self._file(name, chain), name, self._reading, Chain(stamp="").at, Dialect())
            try:
                for key in keys_of(walk, self._keys.header, self._keys.key):
                    found.add(key)
            finally:
                walk.close()
            self._check(name, chain)
            found.seal()
            return found

        if chain.remote is not None and not self._download(name, chain.remote).is_whole:
            return await self._next_piece(ctx, name, chain, chain.remote)
        of = (self._place, name, chain.stamp, chain.turn)
        return await ctx.in_thread(lambda: _last_keys.get(of, make))

    def forget(self, name: str, chain: Chain) -> None:
        """The file is read: nothing of it is held any longer."""
        _last_keys.forget()
        if chain.remote is not None:
            self._download(name, chain.remote).remove()

    async def _local_part(self, ctx: Context, item: Item, name: str, chain: Chain) -> Part:
        """A part as it is stored, before anything is made of it."""

        async def bring() -> Captured:
            return _captured(await ctx.in_thread(lambda: self._read_part(name, chain)))

        where = f"{item.address}#{chain.at.table}:{chain.at.row}"
        return _part_in(await ctx.capture(where, bring, is_page=False))

    async def _ranged_part(
        self, ctx: Context, name: str, chain: Chain, file: RemoteFile
    ) -> Part | Chain:
        """A part of a text on a server; or the same place with more bytes, if they hold no whole row."""
        keys, at = self._keys, chain.at
        kind = keys.format or format_of(name)
        if not file.size:
            return Part(b"", kind, name)
        headers = headers_of(file, at.offset, chain.block)
        body = await block_of(self._remote(name).fetch(ctx, headers), file)
        found = (chain.delimiter, chain.encoding) if at.offset else (keys.delimiter, keys.encoding)
        is_last = at.offset + len(body) >= file.size
        block = Block(body, is_last, name, kind, found[0] or "", found[1] or "")
        part = await ctx.in_thread(lambda: block.part(at, keys.header))
        if part is not None:
            return part
        if chain.block >= LARGEST_BLOCK:
            raise BadData(f"line {at.line}: a row of more than {LARGEST_BLOCK:,} bytes")
        return msgspec.structs.replace(chain, block=next_size(0, chain.block))

    async def _downloaded_part(
        self, ctx: Context, item: Item, name: str, chain: Chain, file: RemoteFile
    ) -> Part | Chain:
        """A part of a file that is downloaded first, in pieces: each is a job, as a part is."""

        async def bring() -> Captured:
            if self._download(name, file).is_whole:
                return _captured(await ctx.in_thread(lambda: self._read_part(name, chain)))
            following = await self._next_piece(ctx, name, chain, file)
            return Captured(b"", {MORE: msgspec.json.encode(following).decode()})

        where = f"{item.address}#{chain.label}"
        response = await ctx.capture(where, bring, is_page=False, counted=False)
        if MORE in response.headers:
            return msgspec.json.decode(response.headers[MORE], type=Chain)
        return _part_in(response)

    async def _next_piece(self, ctx: Context, name: str, chain: Chain, file: RemoteFile) -> Chain:
        if file.size:
            await self._download(name, file).go_on(ctx, self._remote(name))
        else:
            await ctx.in_thread(self._download(name, file).make_empty)
        return msgspec.structs.replace(chain, pieces=chain.pieces + 1)

    def _read_part(self, name: str, chain: Chain) -> Part:
        self._check(name, chain)
        file = self._file(name, chain)
        walk = _walks.take(file, chain.stamp, chain.at)
        if walk is None:
            dialect = Dialect(chain.delimiter, chain.encoding)
            walk = Walk(file, name, self._reading, chain.at, dialect)
        part = walk.part()
        try:
            # Looked at again: what was read must be of one and the same file.
            self._check(name, chain)
        except BaseException:
            walk.close()
            raise
        if part.next is None:
            walk.close()
        else:
            _walks.give(file, chain.stamp, walk)
        return part

    def _check(self, name: str, chain: Chain) -> None:
        """A download is of one state, and nobody else writes to it."""
        if chain.remote is None and stamp_of(self._file(name, chain)) != chain.stamp:
            raise FileChanged

    def _file(self, name: str, chain: Chain) -> Path:
        if chain.remote is not None:
            return self._download(name, chain.remote).file
        return self.local_file(name)

    def local_file(self, name: str) -> Path:
        return self._place.root / paths.path_of(name)

    def _download(self, name: str, file: RemoteFile) -> Download:
        return Download(self._place.root, self._place.source, name, file)

    def _is_by_ranges(self, name: str, chain: Chain) -> bool:
        """Plain text, of which nothing has to be read twice."""
        kind = self._keys.format or format_of(name)
        has_to_be_swept = chain.is_known and bool(self._keys.key)
        is_wide = (self._keys.encoding or "").lower().startswith(("utf-16", "utf_16", "utf16"))
        is_plain = kind in TEXTS and not compression_of(name)
        return is_plain and not is_wide and not has_to_be_swept

    def _remote(self, name: str) -> RemotePlace:
        return BucketObject(name) if is_bucket(name) else Address(self._keys.path)

    @property
    def _reading(self) -> Reading:
        keys = self._keys
        return Reading(
            keys.format or "",
            keys.delimiter or "",
            keys.encoding or "",
            keys.members,
            keys.header,
            keys.element or "",
            keys.max_bytes,
        )


def _captured(part: Part) -> Captured:
    about = msgspec.structs.replace(part, body=b"")
    return Captured(part.body, {PART: msgspec.json.encode(about).decode()})


def _part_in(response: Response) -> Part:
    part = msgspec.json.decode(response.headers[PART], type=Part)
    return msgspec.structs.replace(part, body=response.body)


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
