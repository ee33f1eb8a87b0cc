"""A bench for schedules: a project's scheduler over the store of the contract."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from penstock.engine.leader.scheduler import Scheduler
from penstock.project import Project
from penstock.store.schedule_rows import ScheduleRow, TickRow
from tests.contract.scenes import PLAIN_STEPS, World, done

MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 86_400.0


class Bench:
    """A project's scheduler over the store of the contract."""

    def __init__(self, world: World, folder: Path, sources: dict[str, dict[str, Any]]) -> None:
        self.world, self.folder = world, folder
        self.top: dict[str, Any] = {}
        self.write(sources)

    def write(self, sources: dict[str, dict[str, Any]]) -> None:
        """Another configuration, and a scheduler that has read it."""
        written = {key: {"pipeline": "steps:plain", **more} for key, more in sources.items()}
        (self.folder / "penstock.yaml").write_text(
            json.dumps({"project": "timed", "sources": written, **self.top})
        )
        (self.folder / "steps.py").write_text(PLAIN_STEPS)
        self.project = Project.open(self.folder)
        self.project.clock = self.world.clock
        self.scheduler = Scheduler(self.project, self.world.store)
        self.changed = self.scheduler.plan()

    def tick(self, after_s: float = 0.0) -> float | None:
        self.world.clock.advance(after_s)
        return self.scheduler.tick()

    def go(self, for_s: float, step_s: float) -> None:
        """Look every so often, and end every run at once."""
        for _ in range(round(for_s / step_s)):
            self.tick(step_s)
            self.finish()

    def finish(self) -> None:
        for job in self.world.claim():
            self.world.turn("w", done(job))

    def row(self, source: str = "acme.com", name: str = "main") -> ScheduleRow:
        rows = self.world.store.schedules.all(self.world.source(source))
        return next(row for row in rows if row.name == name)

    def ticks(self, source: str = "acme.com", name: str = "main") -> list[TickRow]:
        """The oldest first."""
        return self.world.store.schedules.ticks(self.world.source(source), name, 1_000_000)[::-1]

    def outcomes(self, source: str = "acme.com", name: str = "main") -> Counter[str]:
        return Counter(tick.outcome for tick in self.ticks(source, name))

    def runs(self) -> list[Any]:
        return self.world.store.runs.newest(limit=1_000_000)[::-1]
