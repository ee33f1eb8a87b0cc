"""The scratch project: the settings of a project, with nothing of its data, and gone afterwards."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError, StoreError
from penstock.private_files import FOLDER_MODE
from penstock.prove.processes import own_environment
from penstock.prove.workplace import Workplace
from penstock.settings import Settings
from penstock.settings.address import server_of, through_port, without_schema
from penstock.snapshots import Capture, open_snapshots
from penstock.store.address import drop_scratch_schema

PREFIX = ".penstock-prove-"
SCHEMA_PREFIX = "penstock_prove_"
# The address of a server may hold a password: it is in the environment of the processes, and in no file.
STORE, SNAPSHOTS = "SCRATCH_STORE", "SCRATCH_SNAPSHOTS"
USUAL_CONCURRENCY = 4
MOST_CONCURRENCY = 64
LEAST_FREE_BYTES = 300_000_000
TRIAL = Capture("http://127.0.0.1/", 200, {}, b"kept", 0.0)


@dataclass(frozen=True, slots=True)
class Terms:
    """What the scratch project takes over from the project."""

    store: str
    synchronous: str
    snapshots: str
    concurrency: int
    worker: dict[str, Any]


class Scratch:
    """Makes scratch projects in a folder of its own beside the project's database; a context manager."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._token = secrets.token_hex(4)
        self._made = 0
        self._schemas: list[str] = []
        self._buckets: list[str] = []
        self.is_shared = settings.is_on_postgres

    def __enter__(self) -> Scratch:
        self.folder = _own_folder(_beside(self._settings))
        self._snapshots = self._own_snapshots()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._snapshots is not None:
            shutil.rmtree(self._snapshots, ignore_errors=True)
        for place in self._buckets:
            _empty(place)
        # What kept the scratch project from being made is said; there is nothing to drop then, or no way to.
        is_told = isinstance(error, PenstockError)
        for schema in self._schemas:
            with suppress(*([StoreError] if is_told else [])):
                drop_scratch_schema(self._settings.store, schema)

    def terms(self) -> Terms:
        """What is taken over."""
        asked = [source.limits.concurrency for source in self._settings.sources.values()]
        worker = self._settings.worker
        is_folder = isinstance(self._settings.snapshots, Path)
        return Terms(
            store="postgres" if self.is_shared else "sqlite",
            synchronous="on, or what the server has" if self.is_shared else "full",
            snapshots="folder" if is_folder else str(self._settings.snapshots).partition(":")[0],
            concurrency=min(MOST_CONCURRENCY, max(asked, default=USUAL_CONCURRENCY)),
            worker={
                "count": worker.count,
                "slots": worker.slots,
                "threads": worker.threads,
                "processes": worker.processes,
                "memory_mb": worker.memory_mb,
                "grace": f"{worker.grace_s:g}s",
            },
        )

    @contextmanager
    def place(
        self,
        sources: Mapping[str, Mapping[str, Any]],
        steps: str,
        folder: Path | None = None,
        through: int | None = None,
    ) -> Iterator[Workplace]:
        """A project of its own, with these sources. `through`: a port that leads to the server."""
        self._made += 1
        if folder is None:
            folder = self.folder / str(self._made)
            folder.mkdir(mode=FOLDER_MODE)
        environment = {
            **own_environment(),
            STORE: self._store(through),
            SNAPSHOTS: self._keeping(folder),
        }
        config = {
            "project": f"prove-{self._token}",
            "store": f"${{{STORE}}}",
            "snapshots": f"${{{SNAPSHOTS}}}",
            "worker": self.terms().worker,
            "sources": sources,
        }
        place = Workplace(folder, config, steps, environment)
        try:
            yield place
        finally:
            place.close()

    def try_out(self) -> None:
        """Refuse what the operator must mend first: a driver, a right, a bucket that is not there."""
        with self.place({}, "") as place:
            place.store.upkeep.check()
            settings = place.settings()
            snapshots = open_snapshots(settings.snapshots, "prove")
            [kept] = snapshots.append([TRIAL])
            snapshots.sync()
            snapshots.read(kept)
            snapshots.close()

    def server(self) -> tuple[str, int]:
        """The host and port of the Postgres server; ("", 0) where it has no single one."""
        return server_of(self._settings.store) if self.is_shared else ("", 0)

    def _store(self, through: int | None) -> str:
        if not self.is_shared:
            return "sqlite:penstock.db"
        schema = f"{SCHEMA_PREFIX}{self._token}_{self._made}"
        self._schemas.append(schema)
        store = self._settings.store
        bare = without_schema(store if through is None else through_port(store, through))
        return f"{bare}{'&' if '?' in bare else '?'}schema={schema}"

    def _keeping(self, folder: Path) -> str:
        where = self._settings.snapshots
        if isinstance(where, str):
            place = f"{where}/penstock-prove-{self._token}-{self._made}"
            self._buckets.append(place)
            return place
        if self._snapshots is None or folder.parent != self.folder:
            return "snapshots"
        return f"file://{self._snapshots / str(self._made)}"

    def _own_snapshots(self) -> Path | None:
        """A folder on the disk of the project's snapshots, if that is not the disk of its database."""
        where = self._settings.snapshots
        if isinstance(where, str):
            return None
        there = _existing(where)
        if there.stat().st_dev == self.folder.stat().st_dev:
            return None
        return _own_folder(there)


def _beside(settings: Settings) -> Path:
    return settings.root if settings.is_on_postgres else _existing(settings.store_file.parent)


def _existing(folder: Path) -> Path:
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder


def _own_folder(beside: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside))
    except OSError as error:
        raise StoreError(
            f"the scratch project can't be made in {beside} ({error.strerror})",
            "it lies on the disk of the project's database: this user must be able to write there",
        ) from None


def _empty(bucket: str) -> None:
    with suppress(StoreError, ImportError):
        snapshots = open_snapshots(bucket, "prove")
        snapshots.remove([segment for segment, _ in snapshots.segments()])


def free_bytes(folder: Path) -> int:
    about = os.statvfs(folder)
    return about.f_bavail * about.f_frsize
