"""Attempts in a process of their own, which can be killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from penstock.engine.worker.on_loop import OnTask
from penstock.engine.worker.performance import Done, Work
from penstock.errors import PipelineError
from penstock.http.response import Response
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Outcome
from penstock.pipeline.attempt import Attempt, BeforeRequest, Services
from penstock.pipeline.error_outcome import outcome_of

if TYPE_CHECKING:
    from penstock.engine.worker.perform import Performer
    from penstock.http.door import Door


class ChildPool(Protocol):
    async def perform(self, work: Work, services: Services) -> Outcome:
        """Perform in a child process, within the work's time; a cancelled call kills the child."""


class InChild(OnTask):
    """An attempt in a child process. The child's pool keeps the time, and kills to keep it."""

    __slots__ = ("children", "work")

    def __init__(self, performer: Performer, work: Work, done: Done, children: ChildPool) -> None:
        super().__init__(performer, work, done)
        self.children = children
        self.work = work

    async def perform(self) -> Outcome:
        try:
            return await self.children.perform(self.work, _ChildServices(self))
        except Exception as error:
            return outcome_of(error, self.stage.errors)


class _ChildServices:
    """What a child asks for is where its attempt can be paused: before a fetch, after a commit."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._services = attempt.services

    async def fetch(self, job: Claimed, url: str, **options: Any) -> Response:
        await self._attempt.pause_point()
        return await self._services.fetch(job, url, **options)

    def door(self, job: Claimed, host: str, port: int, *, tls: bool, begin: BeforeRequest) -> Door:
        raise PipelineError("a child process asked for a connection of its worker")

    async def flush(self, job: Claimed, effects: Effects) -> None:
        await self._services.flush(job, effects)
        await self._attempt.pause_point()

    async def records(
        self, collection: str, after_key: str | None, limit: int
    ) -> list[dict[str, Any]]:
        return await self._services.records(collection, after_key, limit)

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        return await self._services.cursors(job)
