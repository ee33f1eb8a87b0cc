"""A project with the agents of one generated site, on virtual time, and a site that can be redesigned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.app import Project
from penstock.app.views.quarantine import EntryFilter
from penstock.engine.leader.alerts import AlertChore
from penstock.engine.leader.rollups import RollupChore
from penstock.engine.leader.signals import SignalChore
from penstock.engine.leader.trials import Trials
from penstock.settings import load_settings
from penstock.store.rows import RunRow
from penstock.testing import RawResponse, ScriptedNetwork, Simulation, VirtualClock, journal
from tests.agents.corpus.sites import Site

AGENTS = {
    "items": "extraction",
    "mapper": "mapper",
    "validator": "validator",
    "images": "image_qa",
    "steward": "steward",
}


# A chain of signals is shorter than this.
ROUNDS = 12
# After so long everything is looked at again, and what has happened is summed.
LOOK_S = 60.0


class SiteProject:
    """One source for each agent of a site; `run` performs a run of one of them to its end."""

    def __init__(
        self,
        folder: Path,
        site: Site,
        *,
        schedules: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        **params: dict[str, Any],
    ) -> None:
        self.folder, self.site = folder, site
        self.clock = VirtualClock()
        self.pages: dict[str, str | bytes | RawResponse] = {**site.pages}
        self.network = ScriptedNetwork.of_pages(self.pages)
        self._seed = 0
        sources = {
            name: {
                "connector": "web",
                "pipeline": f"penstock.agents.pipelines:{pipeline}",
                "url": site.home,
                "collection": "items",
                "params": params.get(name, {}),
                "limits": {"concurrency": 8},
                "schedule": (schedules or {}).get(name, "manual"),
                **(more or {}),
            }
            for name, pipeline in AGENTS.items()
        }
        text = json.dumps({"project": "agents", "sources": sources, **(settings or {})}, indent=1)
        (folder / "penstock.yaml").write_text(text, encoding="utf-8")

    @contextmanager
    def project(self) -> Iterator[Project]:
        with Project(load_settings(self.folder), self.clock) as project:
            yield project

    def redesign(self, other: Site) -> None:
        """The site has other pages from now on."""
        self.site = other
        self.pages.clear()
        self.pages.update(other.pages)

    def run(self, name: str, kind: str | None = None, **params: Any) -> RunRow:
        with self.project() as project:
            started = project.runs.start(name, kind, params=params or None).run
            assert started is not None
            self._seed += 1
            with Simulation(project, self.network, seed=self._seed, clock=self.clock) as simulation:
                simulation.run()
            return project.require_run(started.id)

    def work(self, project: Project) -> None:
        """Perform what is queued."""
        self._seed += 1
        with Simulation(project, self.network, seed=self._seed, clock=self.clock) as simulation:
            simulation.run()

    def deliver(self) -> list[RunRow]:
        """Hand signals to the schedules that wait for them, and perform the runs that they start."""
        with self.project() as project:
            chore = SignalChore(project, project.connection)
            chore.plan()
            if not (started := chore.look()):
                return []
            self._seed += 1
            with Simulation(project, self.network, seed=self._seed, clock=self.clock) as simulation:
                simulation.run()
            return [project.require_run(run) for run in started]

    def lead(self) -> list[RunRow]:
        """What a leader and its workers do until nothing is left: alerts, signals, trials, and their runs."""
        found: list[int] = []
        with self.project() as project:
            alerts, trials = (
                AlertChore(project, project.connection),
                Trials(project, project.connection),
            )
            chore = SignalChore(project, project.connection, [trials.receive])
            rollups = RollupChore(project.connection, self.clock)
            for each in (alerts, chore, trials):
                each.plan()
            before = {row.id for row in project.connection.runs.newest()}
            for _ in range(ROUNDS):
                self.clock.advance(LOOK_S)
                rollups.finish()
                alerts.look()
                chore.look()
                rows = [row for row in project.connection.runs.newest() if row.id not in before]
                before |= {row.id for row in rows}
                if not rows:
                    break
                found += sorted(row.id for row in rows)
                self._seed += 1
                about: Any = {"seed": self._seed, "clock": self.clock}
                with Simulation(project, self.network, **about) as simulation:
                    simulation.run()
                trials.look()
            alerts.close()
            return [project.require_run(run) for run in found]

    def records(self, collection: str) -> dict[str, Any]:
        with self.project() as project:
            return {row.key: row.data for row in project.connection.records.of(collection)}

    @property
    def schema(self) -> dict[str, Any]:
        [found] = self.records("site_schemas").values()
        return dict(found)

    def notes(self) -> list[str]:
        with self.project() as project:
            return [str(row.data["text"]) for row in journal(project) if row.kind == "job.noted"]

    def errors(self, run: RunRow) -> list[str]:
        with self.project() as project:
            return [each.error for each in project.quarantine.each(EntryFilter(run_id=run.id))]
