"""What a worker can take on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.gates.loaded import Loaded

# Which jobs a worker is given. A suspect is a job under which two workers have died already.
Admits = Literal["all", "sound", "suspect"]
# From this many deaths on a job is one: it runs apart from others that are.
WARD_DEATHS = 2


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a worker can take on now: free slots, what is left of its ceilings, and what it has loaded.

    One that has not said what it has `loaded` is taken to know everything.
    """

    slots: int
    cpu: float = float("inf")
    memory_mb: float = float("inf")
    admits: Admits = "all"
    loaded: Loaded | None = None
