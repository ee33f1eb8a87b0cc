"""What a worker can take on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from penstock.gates.loaded import Loaded

# Which jobs a worker is given. A suspect is a job under which two workers have died already.
Admits = Literal["all", "sound", "suspect"]
# From this many deaths on a job is one: it runs apart from others that are.
WARD_DEATHS = 2


class DrainScope(msgspec.Struct, array_like=True, frozen=True):
    """The part of a prepared run that a drain performs: a stage, and of it every `shards`-th job.

    Without a stage it is the whole run.
    """

    run_id: int
    stage: str = ""
    shard: int = 0
    shards: int = 1

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    def covers(self, run_id: int, stage: str) -> bool:
        return run_id == self.run_id and self.stage in ("", stage)


def scope_of(text: str) -> DrainScope | None:
    """The scope that this is the text of; None for a worker that is no drain's."""
    return msgspec.json.decode(text, type=DrainScope) if text else None


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a worker can take on now: free slots, what is left of its ceilings, and what it has loaded.

    One that has not said what it has `loaded` is taken to know everything. With a `scope` it is a drain's,
    and is given nothing else; without one, nothing of runs that are prepared for drains. `ahead` is how many
    jobs it keeps waiting for each of these sources, beyond what may be under way there.
    """

    slots: int
    cpu: float = float("inf")
    memory_mb: float = float("inf")
    admits: Admits = "all"
    loaded: Loaded | None = None
    scope: DrainScope | None = None
    ahead: Mapping[int, int] = field(default_factory=dict)
