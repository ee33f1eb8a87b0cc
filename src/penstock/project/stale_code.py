"""Workers whose code is older than the project's files, and work that no worker has loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.pipeline.fingerprint import changed_files
from penstock.project.host import host_name

if TYPE_CHECKING:
    from penstock.gates.loaded import WorkerCode
    from penstock.project.opened import Opened
    from penstock.store.store import Store

SHOWN = 3


@dataclass(frozen=True, slots=True)
class StaleWorker:
    """A Penstock on this host that works with files as they were before."""

    pid: int
    files: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"pid {self.pid} works with an older {named(self.files)}; restart it"


@dataclass(frozen=True, slots=True)
class UnknownWork:
    """Queued work that waits because no worker that is alive has loaded it."""

    source: str
    stage: str | None

    @property
    def words(self) -> str:
        what = f"step {self.stage!r} of {self.source}" if self.stage else self.source
        return f"no worker that is alive has loaded {what}; its jobs wait: restart the workers"


def stale_workers(project: Opened) -> list[StaleWorker]:
    """Who works on this host with older files; other hosts have files of their own."""
    found: dict[int, tuple[str, ...]] = {}
    for code in project.connection.workers.codes():
        if code.host != host_name() or code.loaded is None or code.parent_pid in found:
            continue
        changed = changed_files(code.loaded, project.settings.root)
        if changed and code.parent_pid is not None:
            found[code.parent_pid] = tuple(changed)
    return [StaleWorker(pid, files) for pid, files in found.items()]


def unknown_work(store: Store) -> list[UnknownWork]:
    """What could start now if a worker knew it; nothing while nobody works."""
    codes = store.workers.codes()
    if not codes or any(code.loaded is None for code in codes):
        return []
    unknown = [where for where in store.jobs.startable_stages(0.0) if not _is_known(codes, *where)]
    if not unknown:
        return []
    names = {row.id: row.key for row in store.sources.all()}
    return [
        UnknownWork(names[source_id], stage if _has_source(codes, source_id) else None)
        for source_id, stage in unknown
    ]


def named(files: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return ", ".join(files[:SHOWN]) + more


def _is_known(codes: list[WorkerCode], source_id: int, stage: str) -> bool:
    return any(code.loaded is not None and code.loaded.knows(source_id, stage) for code in codes)


def _has_source(codes: list[WorkerCode], source_id: int) -> bool:
    return any(code.loaded is not None and source_id in code.loaded.sources for code in codes)
