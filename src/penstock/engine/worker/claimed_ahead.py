"""Jobs that are claimed beyond what may be under way at their source: no slot waits for a transaction.

A source whose pages take a few milliseconds would stand still while a turn is on the disk. So the worker
claims as many more of them as it performs in the time of a few turns, and each begins as soon as one before
it has ended. A job that waits here has spent nothing, and is released like any other that did not begin.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from math import inf

from penstock.clock import Clock
from penstock.gates.lane import LaneLimits, limits_for
from penstock.jobs.job import Claimed

# As many are claimed ahead as the source's slots perform in this time, by how long its jobs took lately, and
# no more than this, nor than save so much: on a full disk, what has ended must fit into the reserve, once in
# the log and once in the database. What has not begun after so long is handed back: its source is slow now,
# or was paused.
COVER_S = 0.05
MOST_AHEAD = 256
MOST_BYTES_AHEAD = 1 << 20
LONGEST_WAIT_S = 1.0
# No job is taken to be quicker than this.
LEAST_S = 1e-4


class ClaimedAhead:
    """By source: what is under way, what waits for that, and how quick it is. Belongs to the event loop."""

    def __init__(
        self,
        clock: Clock,
        limits: Mapping[int, LaneLimits],
        is_paid: Callable[[int], bool] = lambda source_id: False,
    ) -> None:
        """Nothing of a source that `is_paid`: whether its next job may begin depends on what others cost."""
        self._clock = clock
        self._limits = limits
        self._is_paid = is_paid
        self._under_way: Counter[int] = Counter()
        self._bounds: dict[int, int] = {}
        self._waiting: dict[int, deque[tuple[float, Claimed]]] = {}
        # Of what has ended since the last look: how many, how long they took, and how much they saved; and
        # the means until then.
        self._ended: dict[int, tuple[int, float, int]] = {}
        self._took_s: dict[int, float] = {}
        self._saved: dict[int, float] = {}
        # Made anew of what has ended only: a turn must not look at each of ten thousand sources.
        self._wanted: dict[int, int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values())) if self._waiting else 0

    @property
    def attempts(self) -> set[tuple[int, int]]:
        return {(job.id, job.attempt) for queue in self._waiting.values() for _, job in queue}

    @property
    def sources(self) -> list[int]:
        """Those of which something waits."""
        return list(self._waiting)

    def wanted(self) -> dict[int, int]:
        """How many jobs to claim ahead of each source that is quick enough."""
        for source_id, (count, seconds, saved) in self._ended.items():
            mean_s, mean = seconds / count, saved / count
            self._took_s[source_id] = (self._took_s.get(source_id, mean_s) + mean_s) / 2
            self._saved[source_id] = (self._saved.get(source_id, mean) + mean) / 2
            self._want(source_id)
        self._ended.clear()
        return dict(self._wanted)

    def _want(self, source_id: int) -> None:
        slots = limits_for(source_id, self._limits).concurrency
        many = min(MOST_AHEAD, int(slots * COVER_S / max(self._took_s[source_id], LEAST_S)))
        many = min(many, int(MOST_BYTES_AHEAD / max(self._saved[source_id], 1.0)))
        if many and not self._is_paid(source_id):
            self._wanted[source_id] = many
        else:
            self._wanted.pop(source_id, None)

    def bound(self, bounds: Mapping[int, int]) -> None:
        """So many jobs may be under way at these sources; of others nothing was claimed ahead."""
        known = {key: bound for key, bound in self._bounds.items() if key in self._waiting}
        self._bounds = {**known, **bounds}

    def add(self, job: Claimed) -> None:
        """Have a job wait until it may begin; see `ready`."""
        self._waiting.setdefault(job.source_id, deque()).append((self._clock.monotonic(), job))

    def may_begin(self, source_id: int) -> bool:
        bound = self._bounds.get(source_id)
        return source_id not in self._waiting and (
            bound is None or self._under_way[source_id] < bound
        )

    def begun(self, source_id: int) -> None:
        self._under_way[source_id] += 1

    def has_ended(self, source_id: int, took_s: float | None, saved: int = 0) -> None:
        """`took_s` of a page that `saved` so many bytes; a run-level step says nothing of its pages."""
        if took_s is not None:
            count, seconds, before = self._ended.get(source_id, (0, 0.0, 0))
            self._ended[source_id] = (count + 1, seconds + took_s, before + saved)
        if self._under_way[source_id] > 1:
            self._under_way[source_id] -= 1
        else:
            del self._under_way[source_id]

    def ready(self, source_id: int) -> Iterator[Claimed]:
        """The jobs that may begin now, one by one: the caller begins each before it asks for the next."""
        while (queue := self._waiting.get(source_id)) is not None:
            bound = self._bounds.get(source_id)
            if bound is not None and self._under_way[source_id] >= bound:
                return
            _, job = queue.popleft()
            if not queue:
                del self._waiting[source_id]
            yield job

    def start_over(self) -> None:
        """Count the wait from now: while the store is away, no source is to blame that nothing begins."""
        now = self._clock.monotonic()
        for source_id, queue in self._waiting.items():
            self._waiting[source_id] = deque((now, job) for _, job in queue)

    def late(self) -> list[Claimed]:
        """Take out what has waited for too long: of its source nothing is claimed ahead for the moment."""
        late = self._taken_until(self._clock.monotonic() - LONGEST_WAIT_S)
        for source_id in {job.source_id for job in late}:
            self._took_s[source_id] = LONGEST_WAIT_S
            self._wanted.pop(source_id, None)
        return late

    def all(self) -> list[Claimed]:
        """Take out all that waits."""
        return self._taken_until(inf)

    def _taken_until(self, until: float) -> list[Claimed]:
        taken: list[Claimed] = []
        for source_id, queue in list(self._waiting.items()):
            while queue and queue[0][0] <= until:
                taken.append(queue.popleft()[1])
            if not queue:
                del self._waiting[source_id]
        return taken
