"""A project in a folder, the processes that work on it, and its store to look at."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.counting import count
from penstock.jobs.job import JobState
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.private_files import open_report
from penstock.prove.processes import (
    CLOCK,
    PENSTOCK,
    Overdue,
    kill,
    own_environment,
    parent_of,
    until,
)
from penstock.settings import load_settings
from penstock.store.address import open_store
from penstock.store.jobs import JobFilter
from penstock.store.rows import EventRow, JobRow, RunRow
from penstock.store.store import Store

ENDS = ("job.succeeded", "job.skipped", "job.quarantined")
ENDING_S = 10.0


class Workplace:
    """A project and what works on it. `config` is its penstock.yaml, `steps` the module of its pipelines."""

    # Ctrl-C is for whoever started the commands, who ends them.
    are_apart = True

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        steps: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.environment = {**(own_environment() if environment is None else environment)}
        self._processes: list[subprocess.Popen[str]] = []
        self._store: Store | None = None
        # JSON is YAML.
        (folder / "penstock.yaml").write_text(json.dumps(config))
        (folder / "steps.py").write_text(steps)

    def close(self) -> None:
        """Close the store, and end what was started here and has not ended."""
        if self._store is not None:
            self._store.close()
            self._store = None
        for process in self._processes:
            self.end(process)

    def end(self, process: subprocess.Popen[str]) -> None:
        """Kill a command with its workers: a worker outlives its supervisor for a moment."""
        workers = self._children_of(process.pid) if process.poll() is None else []
        if process.poll() is None:
            process.kill()
        process.communicate()
        for worker in workers:
            kill(worker, signal.SIGCONT)
            kill(worker)

    def _children_of(self, pid: int) -> list[int]:
        pids = [int(each) for each in os.listdir("/proc") if each.isdecimal()]
        return [each for each in pids if parent_of(each) == pid]

    # The command.

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """Start a command; its output goes to files, so that no full pipe can hold it up."""
        number = len(self._processes)
        with open_report(self.folder / f"out-{number}.txt") as out:
            process = subprocess.Popen(
                [*PENSTOCK, *words],
                cwd=self.folder,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                text=True,
                start_new_session=self.are_apart,
            )
        self._processes.append(process)
        return process

    def output(self, process: subprocess.Popen[str]) -> str:
        return (self.folder / f"out-{self._processes.index(process)}.txt").read_text()

    def begin(self, source: str, within_s: float = 60.0) -> int:
        """Queue a run of a source and leave the work to others; answers with its number."""
        process = self.start("run", source, "--detach", "--json")
        if self.wait(process, within_s) != 0:
            raise Overdue(f"`penstock run` failed: {self.output(process).strip()[-400:]}")
        return int(json.loads(self.output(process).splitlines()[-1])["run"])

    def wait(self, process: subprocess.Popen[str], within_s: float) -> int:
        """Until it has ended; answers with its exit code."""
        try:
            return process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            raise Overdue(f"after {within_s:g} s a command had not ended") from None

    # What can be seen.

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = open_store(self.settings(), CLOCK)
        return self._store

    def settings(self) -> Any:
        return load_settings(self.folder, environ=self.environment)

    def run(self, run_id: int) -> RunRow:
        row = self.store.runs.get(run_id)
        if row is None:
            raise Overdue(f"run {run_id} is lost")
        return row

    def jobs(self, *states: JobState, stage: str | None = None) -> list[JobRow]:
        return self.store.jobs.find(JobFilter(states=states, stage=stage, limit=1_000_000))

    def events(self, *kinds: str) -> list[EventRow]:
        kind = kinds[0] if len(kinds) == 1 else None
        found = self.store.journal.events(after_id=0, limit=10_000_000, kind=kind)
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
            lambda: self.run(run_id).pages_done >= pages,
            f"{count(pages, 'page')} done",
            process=process,
        )

    # What must hold.

    def problems(self) -> list[str]:
        """The oracle: nothing is left open, nobody owns anything, each job ended once, the file is whole."""
        still_open = self.jobs(*OPEN_JOB_STATES)
        workers = self.store.workers.all()
        return [
            *([f"{count(len(still_open), 'job')} still open"] if still_open else []),
            *(f"worker {worker.id} is still registered" for worker in workers),
            *self.fence_problems(),
            *self.store.upkeep.check(),
        ]

    def fence_problems(self) -> list[str]:
        """Whether each job ended once, and by its last attempt."""
        ended = self.events(*ENDS)
        counted = Counter(event.job_id for event in ended)
        last = {job.id: job.attempt for job in self.jobs()}
        return [
            *(
                f"job {job} ended {count(times, 'time')}"
                for job, times in counted.items()
                if times > 1
            ),
            *(
                f"job {e.job_id} was ended by attempt {e.attempt}, which was not its last"
                for e in ended
                if e.job_id is not None and e.attempt != last.get(e.job_id)
            ),
        ]

    def record_problems(
        self, expected: set[str], collection: str = "page"
    ) -> tuple[int, int, list[str]]:
        """How many of these records are missing, how many were written twice, and what else is wrong."""
        rows = self.store.records.of(collection, limit=1_000_000)
        keys = {row.key for row in rows}
        twice = sum(row.version > 1 for row in rows) + len(rows) - len(keys)
        strange = sorted(keys - expected)
        wrong = [f"record {key!r} was never sent" for key in strange[:5]]
        return len(expected - keys), twice, wrong

    def checked(self) -> list[str]:
        """What `penstock db check` finds."""
        process = self.start("db", "check")
        with suppress(Overdue):
            if self.wait(process, 120) == 0:
                return []
        return [f"`penstock db check`: {self.output(process).strip()[-400:]}"]
