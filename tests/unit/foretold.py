"""What simulations are held against: the engine itself for some days of virtual time."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

from penstock import Project
from penstock.engine.leader.scheduler import Scheduler
from penstock.engine.leader.signals import SignalChore
from penstock.engine.leader.sla import SlaChore
from penstock.engine.simulation import InitialState, simulate
from penstock.engine.simulation.figures import Figures
from penstock.engine.simulation.samples import Past, Sample
from penstock.gates.budget import next_reset
from penstock.gates.project_terms import rules_of
from penstock.http.failures import FetchError
from penstock.http.network import RawResponse, Request
from penstock.settings import load_settings
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, VirtualLoop, journal
from tests.unit import pages

MODULE = "forecast_pipelines"
PIPELINES = pages.PIPELINES
# A Monday, at midnight UTC.
MONDAY = 1_799_625_600.0 - 1_799_625_600.0 % 86_400
DAY_S = 86_400.0
# So often who leads looks at what has become of the work.
LOOK_S = 5.0


def a_source(number: int, **more: Any) -> dict[str, Any]:
    fetch = {"robots": False, "timeout": "10s"}
    return {"pipeline": f"{MODULE}:pages", "params": {"pages": number}, "fetch": fetch, **more}


def write(folder: Path, config: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "penstock.yaml").write_text(json.dumps({"project": "foretold", **config}))
    return folder


class Real:
    """The engine itself for some days: who leads, and a worker beside it while there is work."""

    def __init__(
        self,
        folder: Path,
        seconds: float = 1.0,
        look_s: float = LOOK_S,
        slower: Mapping[str, float] | None = None,
        broken: Collection[str] = (),
        away: Collection[str] = (),
    ) -> None:
        self.clock = VirtualClock(MONDAY)
        self.seconds = seconds
        self.look_s = look_s
        self.requests: list[float] = []
        self.requests_by_host = Counter[str]()
        # Hosts that answer after so many seconds, with an error, and not at all.
        self.slower = slower or {}
        self.broken = broken
        self.away = away
        self.backlog_peak = 0
        self.project = Project.load(folder)
        self.project.clock = self.clock
        self.network = ScriptedNetwork(self.answer)

    async def answer(self, request: Request) -> RawResponse:
        self.requests.append(self.clock.now())
        host = request.url.split("/")[2]
        self.requests_by_host[host] += 1
        await asyncio.sleep(self.slower.get(host, self.seconds))
        if host in self.away:
            raise FetchError("connection refused", request.url)
        status = 500 if host in self.broken else 200
        return RawResponse(status, {"content-type": "text/plain"}, b"x" * 100)

    def run(self, days: float) -> None:
        """A worker would look around every second, 86,400 times a day: it does so as often as who leads."""
        loop = "penstock.engine.worker.loop"
        with (
            patch(f"{loop}.POLL_S", self.look_s),
            patch(f"{loop}.REVIEW_S", self.look_s),
            Simulation(self.project, self.network, seed=1, clock=self.clock) as simulation,
            closing(VirtualLoop(self.clock)) as virtual,
        ):
            virtual.run_until_complete(self._run(simulation, self.clock.now() + days * DAY_S))

    async def _run(self, simulation: Simulation, ends_at: float) -> None:
        busy = asyncio.Event()
        leading = asyncio.create_task(self._lead(simulation, busy, ends_at))
        while not leading.done():
            await busy.wait()
            busy.clear()
            if self.clock.now() < ends_at:
                await simulation.work(ends_at - self.clock.now())
        await leading

    async def _lead(self, simulation: Simulation, busy: asyncio.Event, ends_at: float) -> None:
        project, clock = self.project, self.clock
        scheduler = Scheduler(project, project.connection)
        signals = SignalChore(project, project.connection)
        promises = SlaChore(project, project.connection)
        scheduler.plan()
        signals.plan()
        bounds = rules_of(project.settings).lasting()
        sources = project.settings.sources.values()
        has_promises = any(each.freshness_s or each.deadline_s for each in sources)
        while clock.now() < ends_at:
            due = scheduler.tick()
            signals.look()
            promises.look()
            simulation.upkeep()
            self.look()
            later = [due or ends_at, next_reset(bounds, clock.now()), ends_at]
            if project.connection.overview().active_runs:
                busy.set()
                later.append(clock.now() + self.look_s)
            if has_promises:
                later.append(clock.now() + 60.0)
            await asyncio.sleep(max(0.001, min(later) - clock.now()))
        busy.set()

    def look(self) -> None:
        rows = self.project.connection.sources.all()
        self.backlog_peak = max(self.backlog_peak, sum(row.queued + row.waiting for row in rows))

    def count(self, kind: str) -> int:
        return sum(event.kind == kind for event in journal(self.project))

    def days_of(self, kind: str) -> list[int]:
        at = [event.at for event in journal(self.project) if event.kind == kind]
        return sorted({int((moment - MONDAY) // DAY_S) for moment in at})

    def starts(self) -> int:
        return len(self.project.connection.runs.newest(limit=1000))

    def starts_by_source(self) -> dict[str, int]:
        return dict(Counter(row.source for row in self.project.connection.runs.newest(limit=1000)))

    def ticks(self, source: str, outcome: str) -> int:
        source_id = self.project.source_ids[source]
        rows = self.project.connection.schedules.ticks(source_id, "main", limit=10_000)
        return sum(row.outcome == outcome for row in rows)

    def missed(self, source: str) -> int:
        """Ticks that nobody was there for, those that fired late included."""
        return sum(
            each.missed
            for each in self.project.connection.schedules.tick_counts(
                self.project.source_ids[source]
            )
        )

    def requests_by_day(self, days: int) -> list[int]:
        found = Counter(int((at - MONDAY) // DAY_S) for at in self.requests)
        return [found[day] for day in range(days)]

    def breaches(self, rule: str) -> int:
        return sum(row.rule == rule for row in self.project.connection.promises.breaches())


def foretell(
    folder: Path, days: float, assumed: Sample, seed: int = 1, **others: Sample
) -> Figures:
    """What would come of it, with runs that are all like this one; `others` by the source's first word."""
    settings = load_settings(folder)
    samples = {key: others.get(key.partition(".")[0], assumed) for key in settings.sources}
    past = {key: Past((sample,), True) for key, sample in samples.items()}
    return simulate(settings, InitialState(MONDAY, past), days, seed)


def exhausted_on(figures: Figures) -> list[int]:
    at = [moment for budget in figures.budgets for moment in budget.exhausted_at]
    return sorted({int((moment - MONDAY) // DAY_S) for moment in at})


SIMPLE = Sample(pages=10, requests=1.0, seconds=1.0, failures=0.0)
