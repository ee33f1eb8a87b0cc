"""Pages of a replay: they come from the runs that are replayed, and are served from their snapshots.

Nothing of a replay reaches the network, and nothing that it does counts before a person commits it:
what it saves is staged, and it moves no checkpoint and raises no signal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from penstock.engine.worker.snapshot_writer import SnapshotWriter
from penstock.http.failures import FetchError
from penstock.http.response import Response
from penstock.jobs.canary.share import is_in_share
from penstock.jobs.job import Claimed, NewJob
from penstock.jobs.outcome import Failed
from penstock.jobs.replay import REPLAY_STAGE, entry_stages
from penstock.pipeline.attempt import Attempt, StepRun
from penstock.pipeline.context import Context
from penstock.pipeline.graph import Graph, Stage, stage_of_our_own
from penstock.store.replays import ReplayedJob
from penstock.store.store import Store


class Ask(Protocol):
    """Have a verb of the store performed, in its own thread."""

    def __call__(self, verb: Callable[[], Any]) -> Awaitable[Any]: ...


class ReplayPages:
    """What a worker needs for the jobs of replays."""

    def __init__(self, store: Store, ask: Ask, snapshot_writer: SnapshotWriter) -> None:
        self._store = store
        self._ask = ask
        self._snapshot_writer = snapshot_writer

    async def fetch(
        self, job: Claimed, run: StepRun, url: str, options: dict[str, Any]
    ) -> Response:
        """The page as the replayed run has seen it; what it has not seen is refused."""
        about: dict[str, Any] = {
            "of_run_id": run.of_run_id,
            "since_at": run.options.since_at,
            "source_id": job.source_id,
            "stage": job.stage,
            "key": job.key,
            "snapshot_id": job.snapshot,
            "is_sole": options.get("method", "GET") != "GET",
        }
        row = await self._ask(lambda: self._store.replays.snapshot(url, **about))
        if row is None:
            raise FetchError(f"not in the snapshots {_of(run)}", url, None, True, "data")
        return await self._snapshot_writer.read(job, row)

    def stage(self, graph: Graph) -> Stage:
        """The first stage of every replay of this pipeline."""

        async def bring(_: Any, ctx: Context) -> AsyncIterator[bool]:
            attempt = ctx._attempt
            async for jobs in self._jobs(attempt, entry_stages(graph.plan())):
                for job in jobs:
                    attempt.enqueue(job)
                yield True  # here the attempt makes room for more

        return stage_of_our_own(REPLAY_STAGE, bring)

    async def _jobs(self, attempt: Attempt, stages: tuple[str, ...]) -> AsyncIterator[list[NewJob]]:
        """The newest run first: a page that several runs have seen is replayed as it was last."""
        for run_id in await self._runs(attempt):
            for stage in stages:
                after_key: str | None = None
                while page := await self._page(attempt, run_id, stage, after_key):
                    wanted = [job for job in page if _is_wanted(job, attempt.run)]
                    yield [_again(stage, job, attempt.source.priority) for job in wanted]
                    after_key = page[-1].key

    async def _runs(self, attempt: Attempt) -> list[int]:
        run = attempt.run
        if run.of_run_id is not None:
            return [run.of_run_id]
        source_id, since_at = attempt.job.source_id, run.options.since_at or 0.0
        found: list[int] = await self._ask(lambda: self._store.runs.since(source_id, since_at))
        return found

    async def _page(
        self, attempt: Attempt, run_id: int, stage: str, after_key: str | None
    ) -> list[ReplayedJob]:
        only = attempt.run.options.is_quarantined_only
        found: list[ReplayedJob] = await self._ask(
            lambda: self._store.replays.jobs(run_id, stage, after_key, quarantined_only=only)
        )
        return found


def another_version() -> Failed:
    """A worker that was started before the pipeline was changed would replay what is not today's logic."""
    error = (
        "this worker has another version of the pipeline than the replay was started with: "
        "restart it and retry, or start a new replay"
    )
    return Failed(error, is_permanent=True, kind="permanent", cause="another version")


def _again(stage: str, job: ReplayedJob, priority: int) -> NewJob:
    return NewJob(stage, job.key, job.item.encode(), priority, job.snapshot)


def _is_wanted(job: ReplayedJob, run: StepRun) -> bool:
    """A canary takes only its share."""
    takes = run.options.takes
    return takes is None or is_in_share(job.key, takes.percent, takes.salt)


def _of(run: StepRun) -> str:
    if run.of_run_id is not None:
        return f"of run {run.of_run_id}"
    since = datetime.fromtimestamp(run.options.since_at or 0.0, UTC)
    return f"since {since:%Y-%m-%d %H:%M} UTC"
