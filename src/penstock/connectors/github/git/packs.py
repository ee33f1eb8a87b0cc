"""Packs, read within bounds: what a stranger has packed may unpack to more than there is memory."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.jobs.failures import BadData

COMMIT, TREE, BLOB, TAG, OFFSET_DELTA, NAMED_DELTA = 1, 2, 3, 4, 6, 7
_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob", TAG: b"tag"}
_SLICE = 65_536
_CHECKSUM = 20


@dataclass(frozen=True, slots=True)
class _Known:
    """An object that was met. One whose kind is not wanted has no data."""

    kind: int
    data: bytes | None


class _Reader:
    """One way through a pack, from its first object to its last."""

    def __init__(
        self, pack: bytes, most: int, wanted: frozenset[int], bases: Mapping[str, bytes]
    ) -> None:
        self._pack, self._left, self._wanted, self._bases = pack, most, wanted, bases
        self._known: dict[int, _Known] = {}
        self._by_name: dict[str, int] = {}
        self.objects: dict[str, bytes] = {}

    def read(self) -> None:
        pack = self._pack
        if pack[:4] != b"PACK" or len(pack) < 12 + _CHECKSUM:
            raise _broken("it has no beginning")
        if hashlib.sha1(pack[:-_CHECKSUM], usedforsecurity=False).digest() != pack[-_CHECKSUM:]:
            raise _broken("its checksum is wrong")
        at = 12
        for _ in range(int.from_bytes(pack[8:12], "big")):
            at = self._object(at)

    def _object(self, start: int) -> int:
        kind, size, at = self._head(start)
        if kind in (OFFSET_DELTA, NAMED_DELTA):
            base, at = self._base(kind, start, at)
            delta, at = self._unpacked(at, size, is_kept=base.data is not None)
            data = None
            if base.data is not None and delta is not None:
                data = applied(base.data, delta, self._left)
                self._left -= len(data)
            self._keep(start, base.kind, data)
            return at
        if kind not in _NAMES:
            raise _broken(f"there is no kind {kind} of objects")
        data, at = self._unpacked(at, size, is_kept=kind in self._wanted)
        self._keep(start, kind, data)
        return at

    def _keep(self, start: int, kind: int, data: bytes | None) -> None:
        self._known[start] = _Known(kind, data)
        if data is not None:
            name = name_of(kind, data)
            self._by_name[name] = start
            self.objects[name] = data

    def _head(self, at: int) -> tuple[int, int, int]:
        """The kind and size of an object, and where it goes on."""
        byte = self._byte(at)
        kind, size, shift = (byte >> 4) & 7, byte & 15, 4
        while byte & 128:
            at += 1
            byte = self._byte(at)
            size |= (byte & 127) << shift
            shift += 7
            if shift > 60:
                raise _broken("an object has no size")
        return kind, size, at + 1

    def _base(self, kind: int, start: int, at: int) -> tuple[_Known, int]:
        """What a delta changes: an object before it, as git writes packs, or one that we said we have."""
        if kind == NAMED_DELTA:
            name = self._pack[at : at + 20].hex()
            found = self._by_name.get(name)
            at += 20
            if found is None and self._bases:
                # A base that we do not keep is a blob, and so is what is made of it.
                data = self._bases.get(name)
                return _Known(BLOB if data is None else TREE, data), at
        else:
            byte = self._byte(at)
            back = byte & 127
            while byte & 128 and back < len(self._pack):
                at += 1
                byte = self._byte(at)
                back = ((back + 1) << 7) | (byte & 127)
            found, at = start - back, at + 1
        known = self._known.get(-1 if found is None else found)
        if known is None:
            raise _broken("a delta has no base")
        return known, at

    def _unpacked(self, at: int, size: int, *, is_kept: bool) -> tuple[bytes | None, int]:
        """The bytes of an object, of the size that it says, and where the next one begins."""
        if size > self._left:
            raise BadData(
                "the pack unpacks to more than is read; raise fetch.max_bytes", cause="a huge pack"
            )
        self._left -= size
        inflater, made, kept = zlib.decompressobj(), 0, bytearray()
        try:
            while not inflater.eof:
                packed = self._pack[at : at + _SLICE]
                # One byte more than there should be shows that it is longer than it says.
                piece = inflater.decompress(packed, min(_SLICE, size - made + 1))
                rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                at += len(packed) - len(rest)
                made += len(piece)
                if made > size or (not packed and not piece):
                    raise _broken("an object is not of its size")
                if is_kept:
                    kept += piece
        except zlib.error:
            raise _broken("an object can't be unpacked") from None
        if made != size:
            raise _broken("an object is not of its size")
        return (bytes(kept) if is_kept else None), at

    def _byte(self, at: int) -> int:
        if at >= len(self._pack):
            raise _broken("it ends too soon")
        return self._pack[at]


def objects_of(
    pack: bytes, most: int, wanted: frozenset[int], bases: Mapping[str, bytes] | None = None
) -> dict[str, bytes]:
    """The objects of the wanted kinds by their names; all of the pack unpacks to at most `most` bytes.

    `bases`: trees that the server knows we have. What it packs may be told by its difference from them.
    """
    reader = _Reader(pack, most, wanted, bases or {})
    reader.read()
    return reader.objects


def applied(base: bytes, delta: bytes, most: int) -> bytes:
    """What a delta makes of its base. A few bytes of it can ask for copies without end."""
    base_size, at = _varint(delta, 0)
    size, at = _varint(delta, at)
    if base_size != len(base) or size > most:
        raise _broken("a delta does not fit its base")
    made = bytearray()
    while at < len(delta):
        code = delta[at]
        at += 1
        if code & 128:
            start, length, at = _copy(code, delta, at)
            if start + length > len(base):
                raise _broken("a delta copies what is not there")
            piece = base[start : start + length]
        else:
            piece, at = delta[at : at + code], at + code
        made += piece
        if not piece or len(made) > size:
            raise _broken("a delta makes more than it says")
    if len(made) != size:
        raise _broken("a delta makes less than it says")
    return bytes(made)


def _copy(code: int, delta: bytes, at: int) -> tuple[int, int, int]:
    """From where, and how much, a delta copies; and where it goes on."""
    start = length = 0
    for bit in range(7):
        if code & (1 << bit):
            if at >= len(delta):
                raise _broken("a delta ends too soon")
            if bit < 4:
                start |= delta[at] << (8 * bit)
            else:
                length |= delta[at] << (8 * (bit - 4))
            at += 1
    return start, length or 65_536, at


def _varint(delta: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(delta) and shift <= 56:
        byte = delta[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if not byte & 128:
            return value, at
    raise _broken("a delta has no size")


def name_of(kind: int, data: bytes) -> str:
    """The name of an object: a checksum of what it is."""
    head = _NAMES[kind] + b" " + str(len(data)).encode() + b"\0"
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()


def _broken(why: str) -> BadData:
    return BadData(f"the git server's pack is broken: {why}", cause="a broken pack")
