"""The contract: what a connector is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import msgspec

from penstock.errors import ConfigError
from penstock.http.lastmod import FINGERPRINT
from penstock.pipeline.step import UNBOUNDED
from penstock.settings.connector import ConnectorKeys

if TYPE_CHECKING:
    from penstock.connectors.target import Recognised, Target
    from penstock.jobs.effects.pages import KnownPage
    from penstock.jobs.windows import Window
    from penstock.pipeline.context import Context
    from penstock.settings import BackfillSettings

# absent: what a complete listing does not have is deleted. asked: it is read once more, which tells.
# within: the same as absent, for the parts that `discover` says are Listed, and for nothing else.
# never: a listing says nothing of what it does not have, as that of a feed.
Deletions = Literal["absent", "asked", "within", "never"]


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that can be read. `address` is what its bytes are stored by, unique among all sources.

    With the same `fingerprint` as when it was read last, an incremental run does not read it. Up to its
    first dot it is equal for equal content, such as a size: by that, renamed items are looked for. Instead of
    a fingerprint it may have `changed`, a date in the place's own words. `about` is whatever `read` needs
    besides, as JSON has it.
    """

    key: str
    address: str
    fingerprint: str = ""
    about: dict[str, Any] = {}
    is_deleted: bool = False
    moved_from: str = ""
    moved_to: str = ""
    changed: str = ""
    # Set by the listing: nothing that was read is known at this address, so nobody has to ask again.
    is_new: bool = False

    @property
    def announced(self) -> str:
        """What is remembered of it before it is read."""
        return self.changed or FINGERPRINT + self.fingerprint


class Checkpoint(msgspec.Struct, frozen=True):
    """All items before this one are listed: where to go on, for a partition."""

    cursor: Any
    partition: str = "default"
    ordered: bool = True


class Unlisted(msgspec.Struct, frozen=True):
    """A part of the place could not be listed: what is known below this address is not deleted."""

    address: str
    reason: str


class Listed(msgspec.Struct, frozen=True):
    """A part of the place was listed to its end: what is known below it and not found is deleted."""

    address: str


class Unvisited(msgspec.Struct, frozen=True):
    """All that is below this address is as it was: nothing of it is read or deleted, but what is named."""

    address: str


class Removed(msgspec.Struct, frozen=True):
    """The place says that there is nothing at this address any more."""

    address: str


Found: TypeAlias = "Item | Checkpoint | Unlisted | Listed | Unvisited | Removed"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of an item, as a record of the collection has it."""

    key: str
    kind: str
    title: str = ""
    text: str = ""
    meta: dict[str, Any] = {}
    links: list[str] = []
    # What has fields of its own: rows of a table, a JSON value. None where there is no such thing.
    data: Any = None
    # Of the content: equal content has an equal one.
    fingerprint: str = ""


class Tombstone(msgspec.Struct, frozen=True):
    """What was read says that the record of this key is no more."""

    key: str


class Gone(Exception):
    """Raise in `read`: the item is no more. If it was read before, its record becomes a tombstone."""


class Place(msgspec.Struct, frozen=True):
    """Which source it is for, and the folder of its penstock.yaml."""

    source: str
    root: Path


class Sample(msgspec.Struct, frozen=True):
    """Demo data: the keys of a source that reads it, once it is written into a folder."""

    name: str
    keys: dict[str, Any]


K = TypeVar("K", bound=ConnectorKeys)


class Connector(ABC, Generic[K]):
    """Reads one kind of place. It is made once for each source and keeps nothing between two calls.

    Declare `name`, `summary` and `Settings`, and write `discover` and `read`; the rest has defaults.
    """

    name: ClassVar[str]
    # One line.
    summary: ClassVar[str]
    Settings: ClassVar[type[ConnectorKeys]]
    # To be changed when the same bytes are read differently: what was read before is read again.
    version: ClassVar[int] = 1
    # The extra of its package that it needs, and the modules that the extra installs.
    extra: ClassVar[str] = ""
    modules: ClassVar[tuple[str, ...]] = ()
    distribution: ClassVar[str] = "penstock"

    deletions: ClassVar[Deletions] = "never"
    # Whether renamed items are looked for, by content; `digest` answers then.
    finds_renames: ClassVar[bool] = False
    # Whether its items are windows of time, for each partition: `windowed` makes them, and the source can be
    # backfilled. Whether it has a stream, which `listen` follows. Whether `settle` ends each run.
    takes_windows: ClassVar[bool] = False
    has_stream: ClassVar[bool] = False
    settles: ClassVar[bool] = False
    # Whether its stream has no documents: it raises signals that say when the source is worth a run.
    hints: ClassVar[bool] = False

    # How its jobs are performed: retry class, kinds of errors, resources of one job, how many at once.
    retry: ClassVar[str] = "fast"
    errors: ClassVar[Mapping[str, Any]] = {}
    resources: ClassVar[Mapping[str, float]] = {}
    concurrency: ClassVar[int | None] = None
    timeout: ClassVar[str | None] = None
    # Whether its requests obey robots.txt where `fetch.robots` says nothing: an API is made for programs.
    robots: ClassVar[bool] = True

    def __init__(self, settings: K, place: Place) -> None:
        self.settings = settings
        self.place = place

    @abstractmethod
    def discover(self, ctx: Context, cursors: Mapping[str, Any]) -> AsyncIterator[Found]:
        """What is there. `cursors` are the checkpoints of all partitions as the last run left them."""

    @abstractmethod
    def read(
        self, ctx: Context, item: Item
    ) -> AsyncIterator[Document | Tombstone | Item | Checkpoint]:
        """One item: its documents, further items that it leads to, and what is to be remembered.

        Bytes come from `ctx.fetch` or `ctx.capture`, which store them first and serve replays.
        """

    def windowed(self, window: Window) -> Item:
        """The item of a window of time; `discover` yields no others where there are windows."""
        raise NotImplementedError

    def listen(self, ctx: Context) -> AsyncIterator[Document | Checkpoint]:
        """What happens now, without end. What is to be remembered comes after what it is about."""
        raise NotImplementedError

    async def settle(self, ctx: Context) -> None:
        """Called when all items of a run are read, and what could not be is quarantined."""
        raise NotImplementedError

    @classmethod
    def backfill(
        cls, keys: Mapping[str, Any], written: BackfillSettings | None
    ) -> BackfillSettings | None:
        """How its past is fetched: by the keys of the source, and as `backfill` is written in it."""
        return written

    async def probe(self, ctx: Context) -> Mapping[str, Any]:
        """Whether one can log in, and what is there: a few facts by name, such as `{"mailboxes": 3}`.

        It raises what `discover` would raise, and reads no items: `penstock probe` and `penstock add` read
        the first ones afterwards, by `discover` and `read`. Without facts of its own, that is all of it.
        """
        return {}

    def bounds(self) -> tuple[int, int]:
        """How far items that `read` yields are followed: in steps, and in items of a whole run."""
        return 10, UNBOUNDED

    def key_of(self, address: str) -> str:
        """The key of the item at an address."""
        return address

    def again(self, key: str, page: KnownPage) -> Item:
        """A known item that the listing does not have, to be asked for once more."""
        return Item(key, page.url)

    async def digest(self, ctx: Context, item: Item) -> str:
        """The SHA-256 of an item's bytes, to recognise it under another name."""
        raise NotImplementedError

    async def deleted(self, ctx: Context, item: Item) -> None:
        """An item becomes a tombstone: what was saved besides its documents is deleted here, too."""

    @classmethod
    def missing_modules(cls) -> list[str]:
        """Modules that it needs and that are not installed."""
        return [name for name in cls.modules if find_spec(name) is None]

    @classmethod
    def require(cls) -> None:
        """Refuse to work without its extra; say which to install."""
        if missing := cls.missing_modules():
            raise ConfigError(
                f"the connector {cls.name} needs {', '.join(missing)}",
                f"pip install '{cls.distribution}[{cls.extra}]'",
            )

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """Whether this is what `penstock add` was pointed at: the keys to read it with, or None."""
        return None

    @classmethod
    def sample(cls, folder: Path) -> Sample | None:
        """Write demo data into this folder, to be read without a network; None if it has none."""
        return None

    @classmethod
    def example(cls) -> dict[str, Any]:
        """The keys of the shortest source that works."""
        return {}
