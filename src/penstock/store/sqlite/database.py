"""One connection to one SQLite file: opened with care, written in short immediate transactions.

SQLite's own errors stop here; what leaves this module is a StoreError that says what to do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

import apsw
import msgspec

from penstock.clock import Clock
from penstock.errors import (
    Remedy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreIoError,
    StoreReplaced,
    StoreTooSlow,
)
from penstock.gates.fair_shares import Stretch
from penstock.jobs.job import Claimed, Owned
from penstock.journal.job_events import JobStarted, JobSucceeded
from penstock.private_files import make_private, touch_private
from penstock.store.database import ALL, ONLY_READS, Decoded, Fences, JobRow, to_json
from penstock.store.queries import queries
from penstock.store.schema import Applied, Plan, Purpose, refuse_newer, refuse_unfinished
from penstock.store.sqlite import filesystem, migrate
from penstock.store.sqlite.migrate import APPLICATION_ID, PACKAGE

BUSY_MS = 30_000
# A long read asks after so many of SQLite's steps (about a millisecond) whether it may go on.
STEPS = 20_000
# A larger file takes too long to be written anew while others work on it.
MOST_SCRUBBED = 2 << 30
# How long one who finds the file locked waits before each new try.
WAITS_MS = (1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100)
# How long to wait before the journal mode is asked for again.
AGAIN_MS = 10
# Older versions have a race between a checkpoint and a writer that can corrupt the file.
OLDEST_SAFE_SQLITE = 3_051_003

# Of these there is one for each job in each turn: they have no data, and are written by name.
STARTED, SUCCEEDED = JobStarted.kind, JobSucceeded.kind

# What reading a row can raise when the disk or the file is not what it should be.
BROKEN = (apsw.Error, UnicodeDecodeError, msgspec.DecodeError)

# A statement of ours that is wrong, or a row that none of our statements can have written, was made so by
# somebody else: the schema itself lies in the file as text.
DAMAGE = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.MismatchError,
    apsw.SQLError,
    UnicodeDecodeError,
    msgspec.DecodeError,
)


def sqlite_version() -> tuple[str, int]:
    """The version of SQLite that is used, as people and as SQLite write it."""
    return apsw.sqlite_lib_version(), apsw.SQLITE_VERSION_NUMBER


class SqliteDatabase:
    """Named queries over one apsw connection, for one thread of one process."""

    is_shared = False
    has_to_let_go = False
    avoided: frozenset[int] = frozenset()

    def __init__(
        self, path: Path, clock: Clock, *, vfs: str | None = None, purpose: Purpose = "work"
    ) -> None:
        self.path = path
        self.schema = migrate.newest()
        self.origin: str | None = None
        self._clock = clock
        self._vfs = vfs
        self._purpose = purpose
        self._pid = os.getpid()
        self._queries = queries(PACKAGE)
        self._is_given_up = False
        self._is_closed = False
        self._is_reading = False
        self._connection = self._open()

    def _open(self) -> apsw.Connection:
        if apsw.SQLITE_VERSION_NUMBER < OLDEST_SAFE_SQLITE:
            raise StoreError(
                f"SQLite {apsw.sqlite_lib_version()} can corrupt databases with several writers",
                "install apsw with its bundled SQLite (the wheel from the package index)",
            )
        filesystem.refuse_network_file_system(self.path)
        if filesystem.is_read_only(self.path):
            return self._open_to_look()
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        _make_private(self.path)
        with translated(self.path):
            connection = apsw.Connection(str(self.path), flags=flags, vfs=self._vfs)
            connection.set_busy_handler(self._wait)
            self._prepare(connection)
        self._identity = filesystem.identity_of(self.path)
        return connection

    def give_up(self) -> None:
        """Wait no more for whoever holds the file, now and from now on. For any thread."""
        self._is_given_up = True

    def _wait(self, tried: int) -> bool:
        """As SQLite waits by itself, but so that it can be given up."""
        waited_ms = sum(WAITS_MS[:tried]) + max(0, tried - len(WAITS_MS)) * WAITS_MS[-1]
        if self._is_given_up or waited_ms >= BUSY_MS:
            return False
        time.sleep(WAITS_MS[min(tried, len(WAITS_MS) - 1)] / 1000)
        return not self._is_given_up

    def _open_to_look(self) -> apsw.Connection:
        """A file that can't be written can be read: commands that only look go on, others say why not."""
        address = filesystem.read_only_address(self.path)
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        with translated(self.path):
            connection = apsw.Connection(address, flags=flags, vfs=self._vfs)
            state = migrate.state_of(connection)
        if connection.pragma("application_id") != APPLICATION_ID:
            raise StoreError(f"{self.path} is a database, but not one of Penstock's")
        refuse_newer(self.place, state, self.schema)
        if state.number < self.schema:
            hint = "copy it to where it can be written, and open it there"
            raise StoreError(f"{self.path} is of an older Penstock, and can't be written", hint)
        self._identity = filesystem.identity_of(self.path)
        return connection

    def refuse_if_replaced(self) -> None:
        """What is written to a file that has lost its name is lost, without any error of SQLite's."""
        if not self._is_closed and filesystem.identity_of(self.path) != self._identity:
            raise StoreReplaced(
                f"{self.path} was removed or replaced while it was in use",
                "what was written since is lost unless you put the old file back: stop everything that uses "
                "it, then restore it or a backup",
                remedy=Remedy("store.restore"),
            )

    def _prepare(self, connection: apsw.Connection) -> None:
        # One statement, one moment: another process may be making the file just now.
        facts: list[Any] = connection.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchall()
        known, version, size = facts[0]
        if known != APPLICATION_ID and (known, version, size) != (0, 0, 0):
            raise StoreError(f"{self.path} is a database, but not one of Penstock's")
        if version > self.schema and self._purpose != "schema":
            refuse_newer(self.place, migrate.state_of(connection), self.schema)
        keep_a_log(connection)
        connection.pragma("synchronous", "full")
        connection.pragma("foreign_keys", "off")
        connection.pragma("cache_size", -32_000)
        connection.pragma("wal_autocheckpoint", 4_000)
        connection.pragma("journal_size_limit", 64 << 20)
        if version < self.schema and self._purpose != "schema":
            migrate.ensure_schema(connection, self.place, self._clock)
        if self._purpose == "work":
            found = connection.execute(self._queries["unfinished_copy"]).fetchone()
            refuse_unfinished(self.place, found and found[0])

    def close(self) -> None:
        if os.getpid() == self._pid:
            self._is_closed = True
            with translated(self.path):
                self._connection.close()

    def reopen(self) -> None:
        """Forget everything cached: after a failed sync, what memory holds may not be on the disk."""
        with translated(self.path):
            self._connection.close()
        self.refuse_if_replaced()
        self._connection = self._open()

    @property
    def connection(self) -> apsw.Connection:
        if os.getpid() != self._pid:
            raise StoreError("a database connection was carried into a forked process")
        return self._connection

    # Each query is one call into SQLite that returns at most a handful of rows: batches travel as one
    # JSON parameter. Every row stepped gives up the GIL, and a busy event loop takes 5 ms to hand it
    # back: 500 rows bound one by one took 1.3 s beside a busy thread here, as one statement 25 ms.

    def do(self, name: str, **values: Any) -> int:
        try:
            self.connection.execute(self._queries[name], values)
        except BROKEN as error:
            self._explain(error)
        return self._connection.changes()

    def later(self, name: str, **values: Any) -> None:
        self.do(name, **values)

    def rows(self, name: str, **values: Any) -> list[Any]:
        try:
            return self.connection.execute(self._queries[name], values).fetchall()
        except BROKEN as error:
            self._explain(error)

    def value(self, name: str, **values: Any) -> Any:
        try:
            row = self.connection.execute(self._queries[name], values).fetchone()
        except BROKEN as error:
            self._explain(error)
        return row[0] if row is not None else None

    def json(self, name: str, **values: Any) -> Any:
        text = self.value(name, **values)
        return None if text is None else self._decode(text, object)

    def decoded(self, name: str, kind: type[Decoded], /, **values: Any) -> Decoded:
        return self._decode(self.value(name, **values), kind)

    def _decode(self, text: str, kind: type[Decoded]) -> Decoded:
        try:
            return msgspec.json.decode(text, type=kind)
        except BROKEN as error:
            self._explain(error)

    def run_sql(self, text: str) -> list[Any]:
        """For this package's own upkeep (pragmas, checks), never for a verb."""
        with self._translated():
            return self.connection.execute(text).fetchall()

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    @contextmanager
    def only_reading(self, longest_s: float) -> Iterator[None]:
        connection = self.connection
        until = time.monotonic() + longest_s
        with self._translated():
            connection.pragma("query_only", True)
        connection.set_progress_handler(lambda: time.monotonic() > until, STEPS)
        self._is_reading = True
        try:
            with self._translated():
                yield
        finally:
            self._is_reading = False
            connection.set_progress_handler(None)
            with self._translated():
                connection.pragma("query_only", False)

    @contextmanager
    def writing(self) -> Iterator[float]:
        if self._is_reading:
            raise RuntimeError(ONLY_READS)
        self.refuse_if_replaced()
        with self._translated():
            now = self._clock.now()
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield now
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def at_one_moment(self) -> Iterator[float]:
        with self.reading():
            yield self._clock.now()

    # A write transaction has the whole file to itself: there is nobody to let in or to lock out.

    def let_go(self) -> float:
        return self._clock.now()

    def lock_lanes(self, source_ids: Sequence[int]) -> None:
        return None

    def lock_what_is_free(
        self, source_ids: Sequence[int], run_ids: Sequence[int]
    ) -> tuple[set[int], set[int]]:
        return set(source_ids), set(run_ids)

    def lanes_are_as_read(self) -> bool:
        return True

    def lock_runs(self, run_ids: Sequence[int]) -> None:
        return None

    def nested(self) -> AbstractContextManager[None]:
        return nullcontext()

    def patient(self) -> AbstractContextManager[None]:
        return nullcontext()

    def ready_lanes(
        self,
        floors: Sequence[tuple[int, str, float, int]],
        sources: Sequence[int] | None,
        for_drains: bool,
        stretch: Stretch = ALL,
    ) -> tuple[list[Any], list[Any], int]:
        [(found, reached)] = self.rows("ready_heads", for_drains=for_drains, **stretch._asdict())
        heads = self._decode(found, list[Any])
        return heads, self.json("running_counts") if heads else [], reached

    def fence(
        self, now: float, worker: str, plain: Fences, others: Fences
    ) -> tuple[Sequence[Owned], Sequence[Owned]]:
        # Nothing is won by ending some of them here: what ended well is ended together.
        fences = to_json([*plain, *others])
        return [], self.decoded("fence", list[Owned], fences=fences, worker=worker)

    def succeed(self, now: float, worker: str, owned: Sequence[Owned]) -> None:
        ends = to_json([(job.id, job.attempt) for job in owned])
        self.do("succeed_if_running", now=now, ends=ends)
        ids = to_json([job.id for job in owned])
        noted = {"kind": SUCCEEDED, "actor": worker, "data": None, "ids": ids, "origin": None}
        self.do("add_job_events", now=now, **noted)

    def start(self, now: float, worker: str, job_ids: Sequence[int]) -> list[Claimed]:
        ids = to_json(job_ids)
        self.do("claim_if_queued", now=now, worker=worker, ids=ids)
        noted = {"kind": STARTED, "actor": worker, "data": None, "ids": ids, "origin": None}
        self.do("add_job_events", now=now, **noted)
        return self.decoded("claimed", list[Claimed], ids=ids)

    def new_job_ids(self, count: int) -> Sequence[int]:
        first = 1 + int(self.value("last_job_id"))
        return range(first, first + count)

    def add_jobs(self, now: float, jobs: Sequence[JobRow]) -> set[int]:
        new = {row[0] for row in jobs}
        if self.do("add_jobs", now=now, jobs=to_json(jobs)) != len(jobs):
            new = set(self.json("present_jobs", ids=to_json(sorted(new))))
        return new

    # The schema.

    @property
    def place(self) -> str:
        return str(self.path)

    def plan(self) -> Plan:
        with self._translated():
            return migrate.plan(self.connection, self._clock)

    def migrate(self, actor: str, reason: str) -> Iterator[Applied]:
        with self._translated():
            yield from migrate.migrate(self.connection, self._clock, actor, reason)

    def clear_leftovers(self) -> list[str]:
        """Nothing is ever half made here: whatever is cut short is undone."""
        return []

    def size_bytes(self) -> int:
        return int(self.value("size_bytes"))

    def scrub(self) -> bool:
        """Write the file anew, and empty the log: free space holds what was deleted long ago, too."""
        if self.size_bytes() > MOST_SCRUBBED:
            return False
        try:
            self.connection.execute("VACUUM")
            [(is_busy, _, _)] = self.connection.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            ).fetchall()
        except apsw.BusyError:
            return False
        except BROKEN as error:
            self._explain(error)
        return not is_busy

    def problems(self) -> list[str]:
        found = [str(row[0]) for row in self.run_sql("PRAGMA integrity_check(20)")]
        return [f"file: {text}" for text in found if text != "ok"]

    # Whole tables, for a copy.

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One moment of the file, for as long as this lasts."""
        with self._translated():
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def stream(self, text: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        with self._translated():
            yield from self.connection.execute(text, values)

    def put(self, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._translated():
            self.connection.executemany(text, rows)

    def data_version(self) -> int:
        """Changes when another connection has committed."""
        self.refuse_if_replaced()
        with self._translated():
            return int(self.connection.pragma("data_version"))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            self._explain(error)

    def _explain(self, error: Exception) -> NoReturn:
        """A file that was taken away looks damaged when another lies in its place."""
        if isinstance(error, (*DAMAGE, apsw.IOError, apsw.CantOpenError)):
            self.refuse_if_replaced()
        explain(error, self.path)


def files_of(path: Path) -> list[Path]:
    """A database and what lies beside it: its log, the log's index, the lock, the reserve."""
    return [path.with_name(path.name + tail) for tail in ("", "-wal", "-shm", ".lock", ".reserve")]


def _make_private(path: Path) -> None:
    """SQLite makes a file as the umask has it, and its log with the file's mode."""
    with suppress(OSError):  # where it can't be made, SQLite says why
        touch_private(path.resolve())
    make_private(files_of(path.resolve()))


def keep_a_log(connection: apsw.Connection) -> None:
    """Have changes written ahead to a log.

    The first to ask needs the file for itself, and SQLite answers that it is busy at once, without the wait
    it grants elsewhere: it would upgrade a read. So when several open a new file, all but one ask again.
    """
    for left in reversed(range(BUSY_MS // AGAIN_MS)):
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if not left:
                raise
            time.sleep(AGAIN_MS / 1000)
        else:
            return


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except BROKEN as error:
        explain(error, path)


def explain(error: Exception, path: Path) -> NoReturn:
    """Raise what this error means for an operator; an error of our own making is raised as it is."""
    match error:
        case apsw.FullError():
            hint = "free some space; work resumes automatically"
            raise StoreFull(f"no space left for {path}", hint) from error
        case apsw.BusyError():
            raise StoreError(
                f"{path} has been locked by another process for {BUSY_MS // 1000} s",
                "see which process holds it (lsof), and end it if it is stuck",
            ) from error
        case apsw.InterruptError():
            raise StoreTooSlow("the read took too long, and was given up") from error
        case apsw.CantOpenError():
            hint = "check that the folder exists and is writable"
            raise StoreError(f"can't open {path}", hint) from error
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            hint = "check its owner and permissions"
            raise StoreError(f"{path} can't be written", hint) from error
        case apsw.IOError() | apsw.ConnectionClosedError():
            message = f"the disk reported an error at {path} ({error})"
            raise StoreIoError(message, "check the disk") from error
    if isinstance(error, DAMAGE):
        raise StoreCorrupt(
            f"{path} is damaged or not a database ({error})",
            "stop Penstock, keep the file, and restore a backup",
            remedy=Remedy("store.restore"),
        ) from error
    raise error
