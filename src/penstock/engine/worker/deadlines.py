"""Deadlines: when each attempt of a worker runs out of time, where its supervisor can read it too.

They lie in memory that both processes share. A step that blocks the event loop, or holds the interpreter's
lock in an extension, keeps the worker from telling anything; what it wrote before the step began is there.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from math import inf

Attempted = tuple[int, int]
WORD = 8
NOWHERE = -1


class Deadlines(dict[Attempted, float]):
    """Deadlines by (job, attempt) on the monotonic clock; written through to shared memory, if there is some.

    Belongs to the event loop's thread. Others may call `earliest`: it copies before it looks.
    """

    def __init__(self, shared: SharedDeadlines | None = None) -> None:
        super().__init__()
        self._shared = shared
        self._places: dict[Attempted, int] = {}

    def __setitem__(self, attempted: Attempted, deadline: float) -> None:
        dict.__setitem__(self, attempted, deadline)  # this and what follows is done for each job
        shared, places = self._shared, self._places
        if shared is not None:
            places[attempted] = shared.put(attempted[0], deadline, places.get(attempted))

    def pop(self, attempted: Attempted) -> float:  # type: ignore[override]
        deadline = dict.pop(self, attempted)
        if self._shared is not None:
            self._shared.clear(self._places.pop(attempted))
        return deadline

    @property
    def earliest(self) -> float:
        return min(list(self.values()), default=inf)

    def overdue(self, now: float) -> list[int]:
        return sorted(job_id for (job_id, _), at in list(self.items()) if at <= now)


class SharedDeadlines:
    """One page of memory: when the loop last moved, and a deadline and a job for each place."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, 0)
        words = memoryview(self._memory)
        places = (len(words) // WORD - 1) // 2
        self._pulse = words[:WORD].cast("d")
        self._deadlines = words[WORD : WORD * (1 + places)].cast("d")
        self._jobs = words[WORD * (1 + places) :].cast("q")
        self._free = list(range(places))

    @classmethod
    def create(cls, places: int, now: float) -> SharedDeadlines:
        """For a worker that is about to be started: it moved last now, and has nothing to do."""
        descriptor = _anonymous_file()
        os.ftruncate(descriptor, WORD * (1 + 2 * places))
        made = cls(descriptor)
        made.pulse(now)
        for place in range(places):
            made._deadlines[place] = inf
        return made

    def close(self) -> None:
        """Done with it; the memory goes when the last process is."""
        for view in (self._pulse, self._deadlines, self._jobs):
            view.release()
        os.close(self.descriptor)

    # The worker's side.

    def pulse(self, now: float) -> None:
        self._pulse[0] = now

    def put(self, job_id: int, deadline: float, place: int | None) -> int:
        if place is None:
            # More attempts than it was made for, after a change of penstock.yaml: the watchdog knows of all.
            place = self._free.pop() if self._free else NOWHERE
        if place != NOWHERE:
            self._jobs[place] = job_id
            self._deadlines[place] = deadline
        return place

    def clear(self, place: int) -> None:
        if place != NOWHERE:
            self._deadlines[place] = inf
            self._free.append(place)

    # The supervisor's side.

    @property
    def pulsed_at(self) -> float:
        return self._pulse[0]

    @property
    def earliest(self) -> float:
        return min(self._deadlines.tolist(), default=inf)

    def overdue(self, now: float) -> list[int]:
        """The jobs whose time is over."""
        deadlines, jobs = self._deadlines.tolist(), self._jobs.tolist()
        return sorted(job for job, at in zip(jobs, deadlines, strict=True) if at <= now)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("penstock-deadlines")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
