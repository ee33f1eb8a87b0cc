"""The store: what is kept of a project, by nouns, over one database.

    store.runs.start(…)      store.jobs.enqueue(…)      store.quarantine.release(…)

Each noun is a small class in the module of its name; all of them are written once, over the names of queries,
and each database answers those in its own SQL (`store/database.py` is the seam). Verbs are synchronous and
called from one thread; each is durable when it returns, and is one transaction unless it says otherwise. One
contract suite (`tests/contract`) runs against every database.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import Refused
from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.jobs.outcome import Flush, Settlement
from penstock.store.database import Database
from penstock.store.project_name import claim_environment, claim_for
from penstock.store.rows import Overview
from penstock.store.turn.memory import Memory

if TYPE_CHECKING:
    from penstock.store.alert_facts import AlertFacts
    from penstock.store.alerts import Alerts
    from penstock.store.announcements import Announcements
    from penstock.store.audit import Audit
    from penstock.store.breakers import Breakers
    from penstock.store.budgets import Budgets
    from penstock.store.cadences import Cadences
    from penstock.store.canaries import Canaries
    from penstock.store.cells import Cells
    from penstock.store.checkpoints import Checkpoints
    from penstock.store.deliveries import Deliveries
    from penstock.store.erasure import Erasure
    from penstock.store.explanation import Explanation
    from penstock.store.files import Files
    from penstock.store.followers import Followers
    from penstock.store.hooks import Hooks
    from penstock.store.hosts import Hosts
    from penstock.store.idempotency import Idempotency
    from penstock.store.inbox import Inbox
    from penstock.store.jobs import Jobs
    from penstock.store.journal import Journal
    from penstock.store.kpis import Kpis
    from penstock.store.leaders import Leaders
    from penstock.store.logs import Logs
    from penstock.store.metric_facts import MetricFacts
    from penstock.store.onboardings import Onboardings
    from penstock.store.outlooks import Outlooks
    from penstock.store.pages import Pages
    from penstock.store.postgres.source_rows import SourceRows
    from penstock.store.promises import Promises
    from penstock.store.quarantine import Quarantine
    from penstock.store.record_edits import RecordEdits
    from penstock.store.record_exports import RecordExports
    from penstock.store.records import Records
    from penstock.store.rejects import Rejects
    from penstock.store.releases import Releases
    from penstock.store.replays import Replays
    from penstock.store.rollups import Rollups
    from penstock.store.runbooks import Runbooks
    from penstock.store.runs import Runs
    from penstock.store.schedules import Schedules
    from penstock.store.signals import Signals
    from penstock.store.snapshots import Kept, Snapshots
    from penstock.store.sources import Sources
    from penstock.store.sql_interface import SqlInterface
    from penstock.store.tokens import Tokens
    from penstock.store.turn.turn import Turn
    from penstock.store.undos import Undos
    from penstock.store.upkeep import Upkeep
    from penstock.store.workers import Workers

NOUNS = frozenset(
    """
    alert_facts alerts announcements audit breakers budgets cadences canaries cells checkpoints deliveries
    erasure
    explanation files followers hooks hosts idempotency inbox jobs journal kpis leaders logs metric_facts
    onboardings outlooks pages promises quarantine record_edits record_exports records rejects releases
    replays rollups runbooks runs schedules signals snapshots sources tokens undos upkeep workers
    """.split()
)


class Reserve(Protocol):
    """Space that can be given back when there is no more, so that finished work can be written."""

    def hold(self) -> bool: ...

    def release(self) -> None: ...


class Store(ABC):
    """A durable store of runs, jobs, records and the journal: one connection, for one thread."""

    is_shared: bool
    alert_facts: AlertFacts
    alerts: Alerts
    announcements: Announcements
    audit: Audit
    breakers: Breakers
    budgets: Budgets
    cadences: Cadences
    canaries: Canaries
    cells: Cells
    checkpoints: Checkpoints
    deliveries: Deliveries
    explanation: Explanation
    files: Files
    followers: Followers
    erasure: Erasure
    hooks: Hooks
    hosts: Hosts
    idempotency: Idempotency
    inbox: Inbox
    jobs: Jobs
    journal: Journal
    kpis: Kpis
    leaders: Leaders
    logs: Logs
    metric_facts: MetricFacts
    onboardings: Onboardings
    outlooks: Outlooks
    pages: Pages
    promises: Promises
    quarantine: Quarantine
    record_edits: RecordEdits
    record_exports: RecordExports
    records: Records
    rejects: Rejects
    releases: Releases
    replays: Replays
    rollups: Rollups
    runbooks: Runbooks
    runs: Runs
    schedules: Schedules
    signals: Signals
    snapshots: Snapshots
    sources: Sources
    tokens: Tokens
    undos: Undos
    upkeep: Upkeep
    workers: Workers

    def __init__(self, db: Database, reserve: Reserve) -> None:
        self._db = db
        self._memory = Memory()
        self.reserve = reserve

    def __getattr__(self, name: str) -> Any:
        """A noun is made when it is first asked for: a command that only looks starts without the others."""
        if name not in NOUNS:
            raise AttributeError(f"a store has no {name!r}")
        module = import_module(f"penstock.store.{name}")
        noun = getattr(module, name.title().replace("_", ""))(self._db, *self._needs(name))
        setattr(self, name, noun)
        return noun

    def _needs(self, noun: str) -> tuple[Any, ...]:
        """What the turn remembers, for those who go by it."""
        if noun in ("explanation", "outlooks"):
            return (self._memory,)
        return (self._memory.marks,) if noun in ("audit", "upkeep") else ()

    def turn(
        self,
        worker: str,
        ends: Sequence[Settlement | Flush],
        capacity: Capacity,
        limits: Mapping[int, LaneLimits],
        kept: Sequence[Kept] = (),
    ) -> Turn:
        """Settle what ended, then claim what may start: durable when it returns.

        An end whose attempt no longer owns its job is dropped with all its effects and listed as lost.
        A worker that was buried settles nothing and is given nothing.
        """
        from penstock.store.turn.turn import take_turn

        return take_turn(self._db, self._memory, worker, ends, capacity, limits, kept)

    @abstractmethod
    def sql_interface(self) -> SqlInterface:
        """The views that SQL clients use, to make, drop or check."""
        ...

    def acts_from(self, origin: str | None) -> None:
        """From where what is written through this connection comes, for the journal; None for a worker."""
        self._db.origin = origin

    def at_one_moment(self) -> AbstractContextManager[float]:
        """Several reads of one moment, whatever others write meanwhile; locks nothing."""
        return self._db.at_one_moment()

    def only_reading(self, longest_s: float) -> AbstractContextManager[None]:
        """While this lasts nothing can be written, and a read that takes longer is given up."""
        return self._db.only_reading(longest_s)

    def now(self) -> float:
        """The time by the store's clock, the only one that counts for due times and leases."""
        return self._db.now()

    def overview(self) -> Overview:
        """The whole project in numbers."""
        return self._db.decoded("overview", Overview, now=self._db.now())

    def claim_for(self, project: str, place: str, another: str) -> None:
        """Name an unnamed database after the project; refuse one that holds another project.

        `another` is an address where the project could have a place of its own.
        """
        claim_for(self._db, project, place, another)

    def claim_environment(
        self, environment: str, place: str, is_apart: Callable[[str], bool]
    ) -> None:
        """Note in a new database which environment it is of; refuse another one if either `is_apart`."""
        claim_environment(self._db, environment, place, is_apart)

    def claim_cell(self, cell: str, number: int, place: str) -> None:
        """Note in a new database which cell it is, and begin its ids with the cell's number.

        Refused if it is another one, or holds runs whose ids a second cell could have, too.
        """
        raise Refused("cells are on Postgres", code="cells_need_postgres")

    def source_rows(self, key: str) -> SourceRows:
        """Everything that one source has here, to be moved to another cell."""
        raise Refused("cells are on Postgres", code="cells_need_postgres")

    def refuse_cell(self, place: str) -> None:
        """Refuse a database that is a cell beside `main` to a project that has no cells."""
        name, number = self.cells.identity()
        if number:
            raise Refused(
                f"{place} is the cell {name} of a project, and penstock.yaml has no `cells:`",
                f"add the cell to `cells:` again, and choose it with --cell {name}",
                code="other_cell_database",
            )

    # What each database does in its own way.

    @property
    @abstractmethod
    def name(self) -> str:
        """What an operator calls it."""

    @property
    @abstractmethod
    def listener(self) -> int | None:
        """What becomes readable when something may have changed; None while nobody listens."""

    @abstractmethod
    def has_changed(self) -> bool:
        """Whether another may have written since this was last asked."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def reopen(self) -> None:
        """Make the connection anew, after an error."""

    @abstractmethod
    def give_up(self) -> None:
        """Who leaves does not wait for another process that is in the way."""

    @abstractmethod
    def hurried(self, patience_s: float) -> AbstractContextManager[None]:
        """While this lasts, a call that is not answered for so long has failed."""

    @abstractmethod
    def tidy(self) -> None:
        """What has to be done now and then, and costs a moment."""

    @abstractmethod
    def quick_check(self) -> None:
        """Refuse to work on a damaged database."""

    @abstractmethod
    def refuse_if_replaced(self) -> None:
        """Refuse to work on a file that is no longer the one under its name."""

    @abstractmethod
    def backup(self, target: Path) -> Iterator[float]:
        """Copy the live database, yielding how much is done from 0 to 1."""
