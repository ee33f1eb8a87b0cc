"""Content codings, decoded under a cap: what does not fit is never held in memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable

ACCEPTED = "gzip, deflate"
# Blocked gzip has one member per 64 KB; thousands of empty ones only burn time.
MAX_MEMBERS = 4096
_SLACK = 65536
_GZIP = {"gzip", "x-gzip"}


class UnknownCoding(ValueError):
    """A Content-Encoding that can't be decoded safely here."""


class BrokenCoding(ValueError):
    """The coded bytes are damaged or end too soon."""


class Body:
    """Collects a body chunk by chunk, decoded, up to `max_bytes`."""

    def __init__(self, coding: str, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self.size = 0
        self._received = 0
        self._decode = _decoder(coding)

    @property
    def is_coded(self) -> bool:
        return self._decode is not None

    @property
    def is_overfull(self) -> bool:
        # Coded bytes count too: a stream that decodes to nothing must not go on for ever.
        return self.size > self._max_bytes or self._received > self._max_bytes + _SLACK

    def add(self, chunk: bytes) -> None:
        self._received += len(chunk)
        if self._decode is None:
            self._keep(chunk)
        else:
            self._decode.feed(chunk, self._max_bytes - self.size + 1, self._keep)

    def finish(self) -> bytes:
        if self._decode is not None:
            self._decode.finish()
        return self.so_far()

    def so_far(self) -> bytes:
        """What came, cut at the cap."""
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        return body if len(body) <= self._max_bytes else body[: self._max_bytes]

    def _keep(self, piece: bytes) -> None:
        self._parts.append(piece)
        self.size += len(piece)


class Inflater:
    """gzip (of any number of members) or deflate (with its header or, as some send it, without)."""

    def __init__(self, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._stream: zlib._Decompress | None = None
        self._members = 0

    def feed(self, chunk: bytes, room: int, keep: Callable[[bytes], object]) -> None:
        """Hand on what decodes, `room` bytes at most; the rest of the chunk is then dropped."""
        while chunk and room > 0:
            stream = self._stream or self._opened(chunk)
            if stream is None:
                return
            try:
                piece = stream.decompress(chunk, room)
            except zlib.error:
                raise BrokenCoding("the compressed body is damaged") from None
            keep(piece)
            room -= len(piece)
            chunk = stream.unused_data if stream.eof else stream.unconsumed_tail
            self._stream = None if stream.eof else stream

    def finish(self) -> None:
        if self._stream is not None:
            raise BrokenCoding("the compressed body ends too soon")

    def _opened(self, chunk: bytes) -> zlib._Decompress | None:
        """The first or the next member; None if what follows the last one is padding."""
        if self._members and not (self._is_gzip and chunk[0] == 0x1F):
            return None
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise BrokenCoding("the compressed body has too many members")
        has_header = chunk[0] & 0x0F == 8 and chunk[0] >> 4 <= 7
        return zlib.decompressobj(31 if self._is_gzip else 15 if has_header else -15)


def _decoder(coding: str) -> Inflater | None:
    name = coding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in _GZIP:
        return Inflater(is_gzip=True)
    if name == "deflate":
        return Inflater(is_gzip=False)
    raise UnknownCoding(f"the body is coded as {name[:40]!r}, which was not asked for")
