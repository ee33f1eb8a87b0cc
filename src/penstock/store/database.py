"""What the verbs need of a database: named queries, one transaction at a time, its clock.

The verbs are written once, over the names of queries; each database answers them in its own SQL.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import msgspec

from penstock.gates.fair_shares import Stretch
from penstock.jobs.job import Claimed, Owned

Decoded = TypeVar("Decoded")
encode = msgspec.json.Encoder().encode

# A verb that writes was called where only reads are allowed: a mistake of ours.
ONLY_READS = "this connection only reads now"
# The whole ring of lanes.
ALL = Stretch()
# Larger than every id.
LAST_ID = 2**63 - 1
# A NUL as JSON writes it, and not the end of an escaped backslash.
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


# Id, run, source, stage, unit, key, rank.
JobRow = tuple[int, int, int, str, str, str, float]


class Overtaken(Exception):
    """Somebody else wrote first what this transaction took to be new; to be looked at again."""


Fences = Sequence[tuple[int, int]]


class Database(Protocol):
    """One connection, for one thread of one process. Its errors are StoreErrors."""

    @property
    def schema(self) -> int:
        """The newest schema that this code knows."""
        ...

    # From where the acts of whoever uses this connection come, for the journal; None for a worker.
    origin: str | None

    def now(self) -> float:
        """The time by the only clock that counts for this database."""
        ...

    def monotonic(self) -> float: ...

    def writing(self) -> AbstractContextManager[float]:
        """One write transaction: all of it, durable, or nothing. Enters with the time it has."""
        ...

    def at_one_moment(self) -> AbstractContextManager[float]:
        """Several short reads of one moment. Enters with its time; locks nothing, and keeps nobody out."""
        ...

    def only_reading(self, longest_s: float) -> AbstractContextManager[None]:
        """While this lasts nothing can be written, and a read that takes longer is given up."""
        ...

    @property
    def has_to_let_go(self) -> bool:
        """Whether the transaction has locked what must not be locked before lanes."""
        ...

    def let_go(self) -> float:
        """Give other writers a chance between two halves of a verb that need not be one; the time."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether others may write at the same time, so that what is read must be locked to stay."""
        ...

    def lock_lanes(self, source_ids: Sequence[int]) -> None:
        """Keep these sources as they are until the transaction ends. Before runs, and only once."""
        ...

    def lock_what_is_free(
        self, source_ids: Sequence[int], run_ids: Sequence[int]
    ) -> tuple[set[int], set[int]]:
        """As the two that follow, but without those that somebody else has locked; answers with the rest.

        Where nothing is free one of them is waited for, briefly: it may be all that there is to do.
        """
        ...

    def lanes_are_as_read(self) -> bool:
        """Whether nobody has committed anything since this transaction read lanes; asked behind locks."""
        ...

    @property
    def avoided(self) -> frozenset[int]:
        """Runs that somebody keeps locked, and of which this transaction had better move nothing."""
        ...

    def lock_runs(self, run_ids: Sequence[int]) -> None:
        """Keep these runs and their counters as they are until the transaction ends."""
        ...

    def ready_lanes(
        self,
        floors: Sequence[tuple[int, str, float, int]],
        sources: Sequence[int] | None,
        for_drains: bool,
        stretch: Stretch = ALL,
    ) -> tuple[list[Any], list[Any], int]:
        """The heads of what is queued behind these floors, and what runs: of these sources, or of a stretch.

        With the source up to which these are all that the stretch has. What runs may be of others, too.
        """
        ...

    # What a turn moves by the thousand: a row, its line in the journal, and the answer.

    def fence(
        self, now: float, worker: str, plain: Fences, others: Fences
    ) -> tuple[Sequence[Owned], Sequence[Owned]]:
        """Which of these (job, attempt) pairs are still this worker's: those it ends well, and the rest.

        Nothing stands in the way of the success of plain ones: they may be ended with the question.
        """
        ...

    def succeed(self, now: float, worker: str, owned: Sequence[Owned]) -> None:
        """End these well, which are this worker's."""
        ...

    def start(self, now: float, worker: str, job_ids: Sequence[int]) -> list[Claimed]:
        """Begin an attempt of each of these queued jobs, in this order."""
        ...

    def new_job_ids(self, count: int) -> Sequence[int]:
        """So many ids that no job has."""
        ...

    def add_jobs(self, now: float, jobs: Sequence[JobRow]) -> set[int]:
        """Queue those whose key is not known in their run yet; answers with their ids."""
        ...

    def nested(self) -> AbstractContextManager[None]:
        """A part of the transaction that is undone alone when it raises Overtaken."""
        ...

    def do(self, name: str, **values: Any) -> int:
        """Run a statement; answer how many rows it changed."""
        ...

    def later(self, name: str, **values: Any) -> None:
        """Run a statement whose answer nobody needs; where the way is long, it goes with the next one."""
        ...

    def rows(self, name: str, **values: Any) -> list[Any]: ...

    def value(self, name: str, **values: Any) -> Any:
        """The first column of the first row, or None."""
        ...

    def json(self, name: str, **values: Any) -> Any:
        """A query that answers with one JSON value, or None."""
        ...

    def decoded(self, name: str, kind: type[Decoded], /, **values: Any) -> Decoded:
        """A query that always answers with one JSON value, as this type."""
        ...

    def patient(self) -> AbstractContextManager[None]:
        """For an act of an operator that may take long: wait for as long as it takes."""
        ...

    def scrub(self) -> bool:
        """Leave nothing of what was deleted in the space it took; False where that is left to others."""
        ...

    def problems(self) -> list[str]:
        """What the database itself knows to be wrong with it."""
        ...


def to_json(value: Any) -> str:
    """A batch as one parameter. What no database can store as text is shown as escapes."""
    try:
        text = encode(value).decode()
    except UnicodeEncodeError:
        text = encode(_storable(value)).decode()
    return _NUL.sub(r"\1\\\\x00", text) if "\\u0000" in text else text


def storable_text(text: str) -> str:
    """What a text is once it is stored: lone surrogates and NUL are shown as escapes."""
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text.replace("\x00", "\\x00") if "\x00" in text else text


def bounded_text(text: str, limit: int) -> str:
    """What a key is once it is stored: itself, or where it is too long its beginning and a digest."""
    if len(text) <= limit and text.isascii() and "\x00" not in text:
        return text  # as nearly every key is
    text = storable_text(text)
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
    return f"{encoded[: limit - 33].decode(errors='ignore')}#{digest}"


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, (list, tuple)):
        return [_storable(inner) for inner in value]
    if isinstance(value, dict):
        return {_storable(name): _storable(inner) for name, inner in value.items()}
    return value
