"""Performing one page of a collection that was set aside: from stored answers alone, at the time of then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.engine.dry_run.runner import DryRun
from penstock.engine.dry_run.services import DryServices, open_fetcher
from penstock.engine.dry_run.start import Start
from penstock.engine.dry_run.tried import Tried
from penstock.engine.worker.perform import Performer
from penstock.engine.worker.threads import Threads
from penstock.errors import Refused, nearest
from penstock.http.failures import FetchError
from penstock.http.network import RawResponse, Request
from penstock.http.response import Response
from penstock.jobs.job import Claimed
from penstock.project import Project
from penstock.settings import SourceSettings


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A page's job with all that it fetched, by address. `at` is what its clock shows."""

    stage: str
    key: str
    item: bytes
    at: float
    pages: Mapping[str, Response]


class StillClock:
    """Shows one time of day, so that what a step makes of it is the same every time."""

    def __init__(self, project: Project, at: float) -> None:
        self._clock, self._at = project.clock, at

    def now(self) -> float:
        return self._at

    def monotonic(self) -> float:
        return self._clock.monotonic()


class StoredServices(DryServices):
    """Answers from what was stored. `missing` are the addresses that were asked for and are not there."""

    def __init__(
        self,
        project: Project,
        source: SourceSettings,
        tried: Tried,
        stored: StoredJob,
        **parts: Any,
    ) -> None:
        super().__init__(project, source, tried, **parts, is_offline=True, has_cursors=False)
        self._stored = stored
        self.missing: list[str] = []

    async def _fetch(self, job: Claimed, url: str, options: dict[str, Any]) -> Response:
        found = self._stored.pages.get(url)
        if found is None:
            self.missing.append(url)
            raise FetchError("not in the corpus", url, None, True, "data")
        return found


class NoNetwork:
    """Sends nothing."""

    async def send(self, request: Request) -> RawResponse:
        raise FetchError("not in the corpus", request.url, None, True, "data")

    async def close(self) -> None:
        return None


def perform_stored(
    project: Project, source: SourceSettings, stored: StoredJob
) -> tuple[Tried, list[str]]:
    """What its steps, and those that follow, make of a stored page; and the addresses that are missing.

    The project's store should be an empty one: what is in it is what the steps see.
    """
    graph = project.graph(source)
    stage = graph.stage(stored.stage)
    if stage is None or stage.unit == "run":
        known = [each.name for each in graph.stages if each.unit != "run"]
        raise Refused(
            f"the pipeline of {source.key} has no page step {stored.stage!r} any more",
            nearest(stored.stage, known),
            code="golden_step_gone",
        )
    start = Start(stage, stored.key, stored.item)

    async def run() -> tuple[Tried, list[str]]:
        tried = Tried(source.key, stage.name, msgspec.json.decode(stored.item))
        clock = StillClock(project, stored.at)
        fetcher, threads = open_fetcher(project, clock, NoNetwork()), Threads(1)
        services = StoredServices(project, source, tried, stored, fetcher=fetcher)
        performer = Performer(clock=clock, services=services, threads=threads)
        try:
            dry_run = DryRun(project, source, graph, tried, services, performer, True)
            await dry_run.perform_all(start)
        finally:
            await fetcher.close()
            threads.close()
        return tried, services.missing

    return asyncio.run(run())
