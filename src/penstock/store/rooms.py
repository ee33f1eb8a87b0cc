"""What is free in each worker that is alive."""

from __future__ import annotations

import msgspec

from penstock.gates.capacity import Admits, Capacity, scope_of
from penstock.gates.loaded import Loaded, WorkerCode
from penstock.outlook.outlook import Rooms
from penstock.store.database import Database


class Load(msgspec.Struct, frozen=True):
    """A worker that is alive, and how much of it is taken."""

    id: str
    slots: int
    admits: Admits
    running: int
    cpu: float
    memory_mb: float
    scope: str = ""


def rooms_of(db: Database, now: float, whole: Capacity) -> tuple[int, Rooms]:
    """How many workers are alive, and what is free in each; without any, what one would have.

    The workers of drains have room too, for their part of a run alone; they are not counted.
    """
    loads = db.decoded("worker_loads", list[Load], now=now)
    codes = {
        code.worker: code.loaded for code in db.decoded("worker_codes", list[WorkerCode], now=now)
    }
    rooms = [(load.id, _free(load, whole, codes.get(load.id))) for load in loads]
    alive = sum(not load.scope for load in loads)
    return alive, rooms if alive else [("", whole), *rooms]


def _free(load: Load, whole: Capacity, loaded: Loaded | None) -> Capacity:
    slots = load.slots or whole.slots
    return Capacity(
        max(0, slots - load.running),
        whole.cpu - load.cpu,
        whole.memory_mb - load.memory_mb,
        load.admits,
        loaded,
        scope_of(load.scope),
    )
