"""What is free in each worker that is alive."""

from __future__ import annotations

import msgspec

from penstock.gates.capacity import Admits, Capacity
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


def rooms_of(db: Database, now: float, whole: Capacity) -> tuple[int, Rooms]:
    """How many workers are alive, and what is free in each; without any, what one would have."""
    loads = db.decoded("worker_loads", list[Load], now=now)
    codes = {
        code.worker: code.loaded for code in db.decoded("worker_codes", list[WorkerCode], now=now)
    }
    rooms = [(load.id, _free(load, whole, codes.get(load.id))) for load in loads]
    return len(loads), rooms or [("", whole)]


def _free(load: Load, whole: Capacity, loaded: Loaded | None) -> Capacity:
    slots = load.slots or whole.slots
    return Capacity(
        max(0, slots - load.running),
        whole.cpu - load.cpu,
        whole.memory_mb - load.memory_mb,
        load.admits,
        loaded,
    )
