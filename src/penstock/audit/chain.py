"""The chain: each seal holds a digest of its rows and the hash of the seal before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec

from penstock.audit.line import Line, hash_of

# What the first seal follows.
GENESIS = "0" * 64
# How much of a row's hash is kept beside its seal, to name the row: the digest is over whole hashes.
FINGERPRINT = 6


class Seal(msgspec.Struct, frozen=True):
    """A seal over the rows behind the seal before it, up to `last_id`.

    `gone_through` is the number of the last seal whose rows retention had dropped by then. `fingerprints`
    name the rows while they are there; a seal whose rows are gone has a `pruned_at` instead.
    """

    number: int
    last_id: int
    events: int
    gone_through: int
    newest_at: float
    at: float
    digest: str
    hash: str
    fingerprints: str = ""
    pruned_at: float | None = None


class Head(msgspec.Struct, frozen=True):
    """The end of a chain: enough to see later that nothing before it has changed."""

    number: int
    last_id: int
    hash: str
    at: float


def next_seal(
    before: Seal | None,
    lines: Sequence[Line],
    last_id: int,
    at: float,
    gone_through: int | None = None,
) -> Seal:
    """The seal that follows another one. Without `gone_through` it is what it was."""
    hashes = [hash_of(line) for line in lines]
    gone = gone_through if gone_through is not None else before.gone_through if before else 0
    newest = max((line.at for line in lines), default=before.newest_at if before else 0.0)
    number = before.number + 1 if before else 1
    unsigned = Seal(
        number,
        last_id,
        len(lines),
        gone,
        newest,
        at,
        digest_of(hashes),
        "",
        marks_of(lines, hashes),
    )
    return msgspec.structs.replace(unsigned, hash=seal_hash(unsigned, before))


def digest_of(hashes: Iterable[bytes]) -> str:
    return sha256(b"".join(hashes)).hexdigest()


def seal_hash(seal: Seal, before: Seal | None) -> str:
    """The hash of a seal: canonical JSON of what it says, and of the hash that it follows."""
    said = {
        "after_id": before.last_id if before else 0,
        "at": seal.at,
        "digest": seal.digest,
        "events": seal.events,
        "gone_through": seal.gone_through,
        "last_id": seal.last_id,
        "newest_at": seal.newest_at,
        "number": seal.number,
        "previous": before.hash if before else GENESIS,
    }
    return sha256(msgspec.json.encode(said)).hexdigest()


def marks_of(lines: Sequence[Line], hashes: Sequence[bytes]) -> str:
    """`id:beginning of its hash` of each row."""
    pairs = zip(lines, hashes, strict=True)
    return " ".join(f"{line.id}:{each[:FINGERPRINT].hex()}" for line, each in pairs)


def read_marks(text: str) -> dict[int, str] | None:
    """The fingerprints by id; None where somebody has changed them beyond reading."""
    try:
        pairs = [mark.split(":") for mark in text.split(" ") if mark]
        return {int(number): mark for number, mark in pairs}
    except ValueError:
        return None


def head_of(seal: Seal) -> Head:
    return Head(seal.number, seal.last_id, seal.hash, seal.at)
