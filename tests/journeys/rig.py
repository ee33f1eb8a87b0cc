"""What the journeys drive: a project in a folder, the real command in processes, and its store to look at.

Nothing here sleeps and hopes: `until` looks at an observable (a row, a file, a process that ended)
again and again, and fails with what it was waiting for when its time is over.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import penstock
from penstock.clock import SystemClock
from penstock.jobs.job import JobState
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.settings import load_settings
from penstock.store.address import open_store
from penstock.store.jobs import JobFilter
from penstock.store.rows import EventRow, JobRow, RunRow
from penstock.store.store import Store
from tests.journeys.commands import run_command

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
    "PYTHONPATH": str(Path(penstock.__file__).parents[1]),
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
PENSTOCK = [sys.executable, "-m", "penstock"]
LOOK_S = 0.005
CLOCK = SystemClock()

PAGES = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    yield {"path": response.text}


@pages.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=page["path"], data=page)
"""


def until(
    condition: Callable[[], Any],
    what: str,
    *,
    within_s: float = 120.0,
    process: subprocess.Popen[str] | None = None,
) -> Any:
    """Look until the condition holds, and answer with what it found.

    Also ends, with what the condition finds then, when the process ends.
    """
    ends_at = CLOCK.monotonic() + within_s
    watched = [os.pidfd_open(process.pid)] if process is not None and process.poll() is None else []
    try:
        while not (found := condition()):
            if process is not None and process.poll() is not None:
                return condition()
            if CLOCK.monotonic() > ends_at:
                raise AssertionError(f"after {within_s:g} s still waiting until {what}")
            select.select(watched, [], [], LOOK_S)
        return found
    finally:
        for descriptor in watched:
            os.close(descriptor)


@contextmanager
def counting_site() -> Iterator[CountingSite]:
    """A site in a process of its own; it outlives every Penstock that is killed."""
    server = Path(__file__).with_name("counting_server.py")
    with subprocess.Popen(
        [sys.executable, str(server)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield CountingSite(int(process.stdout.readline()))
        process.stdin.close()


class CountingSite:
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.port = port
        self.url = f"http://{host}:{port}"

    def counts(self) -> Counter[str]:
        """How often each path was asked for."""
        with urllib.request.urlopen(f"{self.url}/counts", timeout=10) as answer:  # noqa: S310
            return Counter(json.loads(answer.read()))

    def times(self) -> list[float]:
        """When each request came, on the site's own monotonic clock."""
        with urllib.request.urlopen(f"{self.url}/times", timeout=10) as answer:  # noqa: S310
            found: list[float] = json.loads(answer.read())
            return found


class Rig:
    """A project in a folder and the processes that work on it."""

    def __init__(
        self,
        folder: Path,
        sources: dict[str, dict[str, Any]],
        pipeline: str = PAGES,
        worker: dict[str, Any] | None = None,
        store: str = "sqlite:penstock.db",
    ) -> None:
        self.folder = folder
        self.database = folder / "penstock.db"
        self._processes: list[subprocess.Popen[str]] = []
        self._store: Store | None = None
        config = {
            "project": "journey", "store": store, "worker": worker or {}, "sources": sources,
        }  # fmt: skip
        # JSON is YAML.
        (folder / "penstock.yaml").write_text(json.dumps(config))
        (folder / "steps.py").write_text(pipeline)

    def close(self) -> None:
        """Close the store, and end what this rig started and has not ended."""
        if self._store is not None:
            self._store.close()
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The command.

    def penstock(self, *words: str, within_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return run_command(words, self.folder, ENVIRONMENT, within_s)

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """Start a command; its output goes to files, so that no full pipe can hold it up."""
        number = len(self._processes)
        with open(self.folder / f"out-{number}.txt", "w") as out:
            process = subprocess.Popen(
                [*PENSTOCK, *words],
                cwd=self.folder,
                env={**ENVIRONMENT, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                text=True,
            )
        self._processes.append(process)
        return process

    def output(self, process: subprocess.Popen[str]) -> str:
        return (self.folder / f"out-{self._processes.index(process)}.txt").read_text()

    def enqueue(self, *sources: str) -> list[int]:
        """Queue a run of each source and leave the work to others; answers with their numbers."""
        done = self.penstock("run", *sources, "--detach", "--json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["run"] for line in done.stdout.splitlines()]

    # What can be seen.

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = open_store(load_settings(self.folder), CLOCK)
        return self._store

    def run(self, run_id: int) -> RunRow:
        row = self.store.runs.get(run_id)
        assert row is not None
        return row

    def jobs(self, *states: JobState, stage: str | None = None) -> list[JobRow]:
        return self.store.jobs.find(JobFilter(states=states, stage=stage, limit=1_000_000))

    def events(self, *kinds: str) -> list[EventRow]:
        found = self.store.journal.events(after_id=0, limit=10_000_000)
        return [event for event in found if not kinds or event.kind in kinds]

    def worker_pid(self, process: subprocess.Popen[str]) -> int | None:
        """The worker process that this command has started and that is alive, if there is one."""
        return next(iter(self.worker_pids(process)), None)

    def worker_pids(self, process: subprocess.Popen[str]) -> list[int]:
        """All of them."""
        pids = [worker.pid for worker in self.store.workers.all()]
        return [pid for pid in pids if parent_of(pid) == process.pid]

    def wait_for_pages(
        self, run_id: int, pages: int, process: subprocess.Popen[str] | None = None
    ) -> None:
        """Until so many pages of this run are settled, or the process has ended."""
        until(
            lambda: self.run(run_id).pages_done >= pages, f"{pages} pages are done", process=process
        )

    # What must hold.

    def assert_sound(self) -> None:
        """The oracle: nothing is left open, nobody owns anything, each job ended once, the file is whole."""
        assert self.jobs(*OPEN_JOB_STATES) == []
        assert self.store.workers.all() == []
        self.assert_fenced()
        assert self.store.upkeep.check() == []
        checked = self.penstock("db", "check")
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def assert_fenced(self) -> None:
        """Each job ended once, and by its last attempt."""
        ended = self.events("job.succeeded", "job.skipped", "job.quarantined")
        twice = [
            job for job, count in Counter(event.job_id for event in ended).items() if count > 1
        ]
        assert twice == []
        last = {job.id: job.attempt for job in self.jobs()}
        stale = [e for e in ended if e.job_id is not None and e.attempt != last[e.job_id]]
        assert stale == []

    def assert_records(self, expected: set[str], collection: str = "page") -> None:
        """Each of these records is there, was written once, and nothing else is."""
        rows = self.store.records.of(collection, limit=1_000_000)
        assert {row.key for row in rows} == expected
        assert len(rows) == len(expected)
        assert {row.version for row in rows} <= {1}


def parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Signal a process that a rig has started; one that is gone already is fine."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def source_of(
    site: CountingSite, pages: int, *, page_ms: int = 0, host: int = 1, **more: Any
) -> dict[str, Any]:
    """A source that reads so many pages of the counting site, at one of its twenty addresses."""
    query = f"n={pages}" + (f"&page_ms={page_ms}" if page_ms else "")
    return {
        "pipeline": "steps:pages",
        "params": {"sitemap": f"http://127.0.0.{host}:{site.port}/sitemap.xml?{query}"},
        "fetch": {"allow_private": True, "robots": False},
        **more,
    }
