"""Jobs in a file, as a team has them, executed by Dagster's own command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from tests.journeys.rig import ENVIRONMENT

HEAD = """
import dagster as dg
from penstock.bridges.dagster import pipeline_job

folder = {folder!r}
again = dg.RetryPolicy(max_retries=2, delay=0)
"""


def jobs_file(folder: Path, text: str) -> Path:
    """A file of definitions beside the project."""
    file = folder / "orchestration" / "dagster_job.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(HEAD.format(folder=str(folder)) + text)
    return file


@contextmanager
def executing(file: Path, job: str, home: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """`dagster job execute`, which has a process for each op; killed at the end if it still runs."""
    command = [sys.executable, "-m", "dagster", "job", "execute", "-f", str(file), "-j", job, *more]
    environment = {**ENVIRONMENT, "DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "yes"}
    with (file.parent / "dagster.log").open("a") as out:
        process = subprocess.Popen(
            command, cwd=file.parent, env=environment, stdout=out, stderr=out, text=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def executed(file: Path, job: str, home: Path, *more: str) -> bool:
    """Whether a job has succeeded."""
    with executing(file, job, home, *more) as process:
        process.wait(600)
    # The command itself ends well even if the run has failed.
    return last_run(home).status is dg.DagsterRunStatus.SUCCESS


def last_run(home: Path) -> dg.DagsterRun:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        return instance.get_runs(limit=1)[0]


def steps_that(home: Path, kind: dg.DagsterEventType) -> list[str]:
    """The ops of the last run with an event of this kind, in order."""
    with dg.DagsterInstance.from_config(str(home)) as instance:
        found = instance.all_logs(last_run(home).run_id, of_type=kind)
    return [entry.dagster_event.step_key or "" for entry in found if entry.dagster_event]
