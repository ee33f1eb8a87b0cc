"""A real worker in this process, on the real database's clock, by whatever way its store is reached.

The test looks at the database by a way of its own, which nothing disturbs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.clock import Clock, SystemClock
from penstock.engine.worker.loop import Worker
from penstock.engine.worker.process import build_worker
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.project import Project
from penstock.store.jobs import JobFilter
from penstock.store.postgres.store import PostgresStore
from penstock.store.rows import EventRow, JobRow, RunRow
from tests.postgres.crowd import ask
from tests.postgres.proxy import Trigger
from tests.postgres.workspace import until

CLOCK = SystemClock()
SOURCE = "shop"
UNHEARD = "claimed in a turn that was not answered"

# Every kind of effect, committed on the way and at the end; each leaves a trace that can be counted.
STEPS = """
from penstock import Pipeline

everything = Pipeline("everything")


@everything.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"n": number}
        if number % 10 == 9:
            ctx.signal("found", n=number)
            ctx.checkpoint(number)
            await ctx.commit()


@everything.step(after="discover", unit="page", key="n")
async def extract(page, ctx):
    number = page["n"]
    ctx.signal("first", n=number)
    ctx.note(f"first {number}")
    ctx.save("first", key=str(number), data=page)
    await ctx.commit()
    ctx.signal("second", n=number)
    ctx.note(f"second {number}")
    yield page


@everything.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("second", key=str(page["n"]), data=page)
"""


class Working:
    """A project on Postgres, and workers of it in threads."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *,
        pages: int = 0,
        steps: str = STEPS,
        pipeline: str = "everything",
        **source: Any,
    ) -> None:
        self.folder = folder
        self.url = url
        self.pages = pages
        self.module = f"steps_{abs(hash(str(folder)))}"
        (folder / f"{self.module}.py").write_text(steps)
        self.source = {
            "pipeline": f"{self.module}:{pipeline}", "params": {"pages": pages}, **source,
        }  # fmt: skip
        self.worker: dict[str, Any] = {}
        self.store = PostgresStore(url, CLOCK)
        self.told: list[str] = []
        self._loading = threading.Lock()

    def close(self) -> None:
        self.store.close()
        sys.modules.pop(self.module, None)

    def __enter__(self) -> Working:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def project(self, url: str | None = None, clock: Clock = CLOCK) -> Project:
        """The project by this way to its store, with a clock that may be wrong."""
        config = {
            "project": "working", "store": url or self.url, "worker": self.worker,
            "sources": {SOURCE: self.source},
        }  # fmt: skip
        with self._loading:
            (self.folder / "penstock.yaml").write_text(json.dumps(config))
            project = Project.load(self.folder)
        project.clock = clock
        return project

    def start_run(self) -> int:
        with self.project() as project:
            return project.run(SOURCE, actor="test")

    def run(self, run_id: int) -> RunRow:
        found = self.store.runs.get(run_id)
        assert found is not None
        return found

    def jobs(self) -> list[JobRow]:
        return self.store.jobs.find(JobFilter(limit=100_000))

    def events(self, *kinds: str) -> list[EventRow]:
        found = self.store.journal.events(after_id=0, limit=1_000_000)
        return [event for event in found if not kinds or event.kind in kinds]

    # Workers.

    def work_until_done(
        self, url: str, strike: Callable[[], Trigger], name: str = "w", clock: Clock = CLOCK
    ) -> Trigger:
        """In this thread, until every run has ended; faults strike from when the worker is there.

        One that can't even be made is made again by its supervisor, which has tests of its own.
        """
        faults: list[Trigger] = []

        def is_over() -> bool:
            if not faults:
                faults.append(strike())
            return not self.store.overview().active_runs

        self.store.workers.register(name, "here", 1, "test")
        asyncio.run(Attendance(self, url, name, clock).work(is_over))
        return faults[0]

    @contextmanager
    def at_work(self, url: str, name: str = "w", clock: Clock = CLOCK) -> Iterator[None]:
        """In a thread, for as long as this lasts."""
        self.store.workers.register(name, "here", 1, "test")
        attendance = Attendance(self, url, name, clock)
        thread = threading.Thread(target=lambda: asyncio.run(attendance.work()), name=name)
        thread.start()
        try:
            yield
        finally:
            attendance.end()
            thread.join()

    # What must hold.

    def assert_everything_once(self, run_id: int) -> None:
        """Every effect of every page is there once, and each attempt that ended was the last."""
        run, pages = self.run(run_id), self.pages
        assert self.store.upkeep.check() == []
        assert run.state == "completed"
        assert (run.inserted, run.updated, run.unchanged) == (2 * pages, 0, 0)
        assert [job for job in self.jobs() if job.state in OPEN_JOB_STATES] == []
        assert [job for job in self.jobs() if job.tries or job.deaths] == []
        numbers = range(pages)
        signals = [("found", n) for n in numbers if n % 10 == 9]
        signals += [(name, n) for name in ("first", "second") for n in numbers]
        raised = ask(
            self.url,
            "SELECT name, (data::json ->> 'n')::integer FROM penstock.signal"
            " WHERE name NOT LIKE 'run.%'",
        )
        assert Counter(raised) == Counter(signals)
        notes = [f"{name} {n}" for name in ("first", "second") for n in numbers]
        assert Counter(e.detail for e in self.events("job.noted")) == Counter(notes)
        for collection in ("first", "second"):
            rows = self.store.records.of(collection, limit=100_000)
            assert sorted(row.key for row in rows) == sorted(map(str, numbers))
            assert {row.version for row in rows} <= {1}
        self.assert_no_attempt_in_vain()

    def assert_no_attempt_in_vain(self) -> None:
        """Who has had more attempts than one was claimed in turns whose answers nobody heard."""
        released = Counter(e.job_id for e in self.events("job.released") if e.detail == UNHEARD)
        again = {job.id: job.attempt - 1 for job in self.jobs() if job.attempt > 1}
        assert again == dict(released)


class Attendance:
    """One worker's time at work, in whichever thread runs it."""

    def __init__(self, working: Working, url: str, name: str, clock: Clock) -> None:
        self._working = working
        self._about = (url, name, clock)
        self._worker: Worker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def work(self, is_over: Callable[[], bool] = lambda: False) -> None:
        url, name, clock = self._about
        with self._working.project(url, clock) as project:
            worker, close = build_worker(project, name, self._working.told.append)
            self._loop, self._worker = asyncio.get_running_loop(), worker
            try:
                await worker.work(is_over)
            finally:
                self._worker = None
                await close()

    def end(self) -> None:
        """From another thread: go home, now."""
        until("it has begun", lambda: self._worker is not None)
        loop, worker = self._loop, self._worker
        assert loop is not None
        assert worker is not None
        for _ in range(2):
            # The first may end it before the second is asked for.
            loop.call_soon_threadsafe(worker.drain)


def until_ended(working: Working, run_id: int, patience_s: float = 60.0) -> None:
    until("the run has ended", lambda: working.run(run_id).is_ended, patience_s)
