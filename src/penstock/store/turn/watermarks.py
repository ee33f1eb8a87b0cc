"""Where the queue of each stage begins, as far as one worker has seen.

A database that keeps old versions of rows for a long reader has to step over every job that was ever
claimed to find the first one that was not. Claims therefore start behind the last key they took. What
comes back with a smaller key (a retry, a job that a dead worker left) is found when the queue behind
the floor is shorter than its counter says, and at the latest when the floors are dropped.
"""

from __future__ import annotations

# How old a floor may get, and the share of a worker's time that looking from the beginning may take.
LONGEST_S = 5.0
SHARE = 0.05

# What is due now was written by a transaction that began no longer ago than transactions may last.
DUE_MARGIN_S = 60.0

Key = tuple[float, int]
Stage = tuple[int, str]
BEGINNING: Key = (-1e300, 0)


class Floors:
    """The key behind which to look, by run and stage."""

    def __init__(self) -> None:
        self._floors: dict[Stage, Key] = {}
        self._drop_at = 0.0
        self._may_look_at = 0.0
        self._due_after = BEGINNING[0]
        self._due_drop_at = 0.0

    def of(self, run_id: int, stage: str) -> Key:
        return self._floors.get((run_id, stage), BEGINNING)

    def all(self) -> list[tuple[int, str, float, int]]:
        return [(*stage, *key) for stage, key in self._floors.items()]

    def raise_to(self, run_id: int, stage: str, key: Key) -> None:
        """Everything up to this key was taken, by us or by somebody who is taking it now."""
        self._floors[run_id, stage] = key

    def lower_to(self, run_id: int, stage: str, key: Key) -> None:
        """A job with this key is queued again."""
        rank, job_id = key
        known = self._floors.get((run_id, stage))
        if known is not None and known >= key:
            self._floors[run_id, stage] = (rank, job_id - 1)

    def drop(self, run_id: int, stage: str) -> None:
        self._floors.pop((run_id, stage), None)

    def due_after(self, now: float) -> float:
        """No job that waits was due before then; asked from the beginning once in a while."""
        has_stepped_back = now < self._due_after + DUE_MARGIN_S
        if now >= self._due_drop_at or has_stepped_back:
            self._due_drop_at = now + DUE_MARGIN_S
            self._due_after = BEGINNING[0]
        return self._due_after

    def woke_all(self, now: float) -> None:
        """Every job that was due by now was woken, or is in the hands of somebody who wakes it."""
        self._due_after = now - DUE_MARGIN_S

    def drop_if_old(self, monotonic: float) -> bool:
        """Begin at the beginning now and then; True if the floors were dropped."""
        if monotonic < max(self._drop_at, self._may_look_at):
            return False
        self._floors.clear()
        self._drop_at = monotonic + LONGEST_S
        return True

    def may_look(self, monotonic: float) -> bool:
        """Whether looking from the beginning is cheap enough to be done again already."""
        return monotonic >= self._may_look_at

    def looked(self, since: float, monotonic: float) -> None:
        """Looking from the beginning took this long: leave time for other things before the next."""
        self._may_look_at = monotonic + (monotonic - since) / SHARE
