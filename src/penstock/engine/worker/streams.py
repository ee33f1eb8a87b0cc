"""Streams: attempts that don't end by themselves.

Each beats while it runs, so that the next one knows since when nobody listened. What was missed for
longer than the source's gap is filled by a backfill of its own, linked to the stream's run; the stream
itself goes on at once with what comes now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

from penstock.engine.worker.calls import Answer
from penstock.engine.worker.stage_config import SourceConfig
from penstock.errors import StoreError
from penstock.jobs.job import Claimed
from penstock.project.backfills import start_linked_backfill
from penstock.store.store import Store

Ask = Callable[[Callable[[], Answer]], Awaitable[Answer]]
FillGap = Callable[[Claimed, float, float], None]

LONGEST_BEAT_S = 5.0


class Streams:
    """The streams of one worker. `fill` starts what fills a gap, in the store's thread."""

    def __init__(self, worker: str, store: Store, calls: Ask[object], fill: FillGap) -> None:
        self._worker = worker
        self._store = store
        self._calls = calls
        self._fill = fill
        self._beats: dict[tuple[int, int], asyncio.Task[None]] = {}

    async def open(self, job: Claimed, gap_s: float) -> None:
        """Fill what was missed since a stream of this source was last alive, then begin to beat."""
        await self._calls(lambda: self._look_back(job, gap_s))
        beating = self._beat(job, min(LONGEST_BEAT_S, gap_s / 4))
        self._beats[job.id, job.attempt] = asyncio.get_running_loop().create_task(beating)

    def close(self, job: Claimed) -> None:
        beats = self._beats.pop((job.id, job.attempt), None)
        if beats is not None:
            beats.cancel()

    def _look_back(self, job: Claimed, gap_s: float) -> None:
        """In the store's thread."""
        alive_at, now = self._store.jobs.stream_alive_at(job.source_id), self._store.now()
        if alive_at is not None and now - alive_at > gap_s:
            self._fill(job, alive_at, now)
            self._store.signals.raise_(
                "gap.found",
                {"start_at": alive_at, "end_at": now},
                actor=self._worker,
                source_id=job.source_id,
                key=f"{job.source_id}:{alive_at}",
            )
        self._store.jobs.beat_stream(self._worker, job.id, job.attempt)

    async def _beat(self, job: Claimed, every_s: float) -> None:
        beat = partial(self._store.jobs.beat_stream, self._worker, job.id, job.attempt)
        while True:
            await asyncio.sleep(every_s)
            with suppress(StoreError):  # a beat that was missed only makes the next gap seem longer
                if not await self._calls(beat):
                    return


def fill_gap(
    store: Store, sources: Mapping[int, SourceConfig], job: Claimed, start_at: float, end_at: float
) -> None:
    """In the store's thread: have what was missed fetched, by a run that is linked to the stream's."""
    source = sources[job.source_id]
    start_linked_backfill(
        store,
        job.source_id,
        source.settings,
        source.graph,
        start_at=start_at,
        end_at=end_at,
        linked_to=job.run_id,
        reason=f"the stream was away for {end_at - start_at:.0f} s",
    )
