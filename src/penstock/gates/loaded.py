"""What a worker has loaded: which stages of which sources it can perform, and from which files."""

from __future__ import annotations

import hashlib

import msgspec


class LoadedSource(msgspec.Struct, frozen=True):
    """The version that its jobs are performed with, and the stages that can be performed."""

    version: str
    stages: tuple[str, ...]


class Loaded(msgspec.Struct, frozen=True):
    """`files` are hashes of what was read, by the path below `root`; `sources` are by their id.

    `runs` is what of a release the worker runs; empty where there are no releases. One `on_trial` performs
    runs of another release, as shadows and canaries have it.
    """

    root: str = ""
    files: dict[str, str] = {}
    sources: dict[int, LoadedSource] = {}
    runs: str = ""
    on_trial: bool = False

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def hash(self) -> str:
        return hash_of(self.text.encode())

    def knows(self, source_id: int, stage: str) -> bool:
        found = self.sources.get(source_id)
        return found is not None and stage in found.stages


class WorkerCode(msgspec.Struct, frozen=True):
    """A worker that is alive, who started it, and what it has loaded; None if it has not said so yet."""

    worker: str
    host: str
    parent_pid: int | None
    loaded: Loaded | None


def hash_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
