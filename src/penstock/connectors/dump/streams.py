"""Streams: the bytes of a file, unpacked and in UTF-8, without more memory than a block of them."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol, cast

from penstock.connectors.dump.lines import Readable
from penstock.jobs.failures import BadData, Permanent

BLOCK = 262_144
# How much larger than packed the unpacked bytes may be, once they are many: gzip can't do more than 1,032.
MOST_RATIO = 1_000
MANY = 100_000_000
# Of zstd: the window that is held in memory, as a power of two.
WINDOW_LOG = 25
COMPRESSIONS = {".gz": "gz", ".bz2": "bz2", ".zst": "zst"}
_SNIFFED = 65_536


def compression_of(name: str) -> str:
    """How a file with this name is packed; empty if it is not."""
    return next((kind for end, kind in COMPRESSIONS.items() if name.lower().endswith(end)), "")


def bare_name(name: str) -> str:
    """The name without the ending of its compression."""
    end = next((end for end in COMPRESSIONS if name.lower().endswith(end)), "")
    return name[: len(name) - len(end)] if end else name


def unpacked(raw: IO[bytes], compression: str) -> IO[bytes]:
    """What a packed stream holds."""
    if compression == "gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw, mode="rb"))
    if compression == "bz2":
        return cast("IO[bytes]", bz2.BZ2File(raw, "rb"))
    if compression == "zst":
        return _zstd(raw)
    return raw


def _zstd(raw: IO[bytes]) -> IO[bytes]:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ModuleNotFoundError:
        raise Permanent(
            "reading .zst needs backports.zstd: pip install 'penstock[zstd]', then retry",
            cause="backports.zstd is not installed",
        ) from None
    options: Any = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
    return cast("IO[bytes]", zstd.ZstdFile(raw, "rb", options=options))


class Told(Protocol):
    """Says how many packed bytes were read."""

    def tell(self) -> int: ...


class Bounded(io.RawIOBase):
    """A stream that ends in BadData if it is damaged, packed too well to be true, or too long."""

    def __init__(self, stream: IO[bytes], raw: Told, most: int) -> None:
        self._stream = stream
        self._raw = raw
        self._most = most
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            found = self._stream.read(len(buffer))
        except Exception as error:  # every library has errors of its own
            raise BadData(
                f"it can't be unpacked: {type(error).__name__}: {str(error)[:200]}",
                cause="damaged archive",
            ) from None
        self._read += len(found)
        if self._read > self._most:
            raise BadData(f"more than {self._most:,} bytes unpacked; raise max_bytes to read it")
        if self._read > MANY and self._read > MOST_RATIO * self._raw.tell():
            raise BadData(
                f"unpacked it is more than {MOST_RATIO:,} times as large as packed: it is left alone",
                cause="decompression bomb",
            )
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class Transcoded(io.RawIOBase):
    """A stream in UTF-8 of one in another encoding."""

    def __init__(self, stream: Readable, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            block = self._stream.read(BLOCK // 4)
            self._rest = self._decoder.decode(block, not block).removeprefix("\ufeff").encode()
            if not block:
                break
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def as_utf8(stream: io.BufferedReader, encoding: str) -> tuple[io.BufferedReader, str]:
    """The stream in UTF-8, and the encoding that it was in: as named, or as its first bytes look."""
    found = encoding or sniffed(stream.peek(_SNIFFED)[:_SNIFFED])
    if is_utf8(found):
        return stream, found
    return io.BufferedReader(Transcoded(stream, found), BLOCK), found


def is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in ("utf-8", "ascii")


def sniffed(start: bytes) -> str:
    """UTF-16 by its mark; else UTF-8, if it can be that; else Windows-1252, which anything can be."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(start)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


@contextmanager
def open_stream(file: Path, compression: str, most: int) -> Iterator[io.BufferedReader]:
    """The unpacked bytes of a file."""
    with file.open("rb") as raw:
        if not compression:
            yield raw
            return
        bounded: Any = Bounded(unpacked(raw, compression), raw, most)
        with io.BufferedReader(bounded, BLOCK) as stream:
            yield stream
