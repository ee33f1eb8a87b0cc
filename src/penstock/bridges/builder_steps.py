"""Steps of the builder as tasks: each is one `penstock builder run-step` in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.app.secrets import environment_secrets, redact, secrets_among
from penstock.bridges.drains import TaskFailed
from penstock.bridges.tasks import BridgeTask

OK, USAGE, PARTIAL = 0, 2, 3
WARN = "WARN"
# How long a command may take to stop in good order before it is killed.
GRACE_S = 30.0
LONGEST_LINE = 100_000
LAST_LINES = 5
_OWN_OPTIONS = re.compile(r"--(job|outdir|profile|resume)(=|$)")


@dataclass(frozen=True, slots=True)
class BuilderJob:
    """What all steps of a builder's run share: its job file, where it writes, and more for the command."""

    job_path: str
    outdir: str
    profile: str = "standard"
    extra_args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()

    def command(self, step: str, *, resume: bool = True) -> list[str]:
        """The arguments of `penstock` for one step."""
        shared = ["--job", self.job_path, "--outdir", self.outdir, "--profile", self.profile]
        how = ["--json", "--resume"] if resume else ["--json"]
        return ["builder", "run-step", step, *shared, *how, *self.extra_args]


def builder_job(
    job_path: str | os.PathLike[str],
    outdir: str | os.PathLike[str],
    profile: str = "standard",
    extra_args: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> BuilderJob:
    """The job as it was given; `extra_args` must not say again what the other parameters say."""
    extra = tuple(str(each) for each in extra_args or ())
    for each in extra:
        if _OWN_OPTIONS.match(each):
            raise TaskFailed(
                f"extra_args has {each.partition('=')[0]}, which is a parameter of its own",
                code="usage",
                exit_code=USAGE,
                is_final=True,
            )
    return BuilderJob(
        os.fspath(job_path), os.fspath(outdir), profile, extra, tuple((env or {}).items())
    )


def run_builder_step(
    job: BuilderJob, step: str, tell: Callable[[str], None], *, resume: bool = True
) -> str:
    """Run one step; answer with a warning, empty if all went well. Raises TaskFailed if it failed.

    `tell` gets each line that the command prints, without secrets. Whatever is raised here meanwhile
    stops the command in good order; if this process is killed, the command dies with it.
    """
    ends: list[dict[str, Any]] = []

    def heard(line: str) -> None:
        found = _end_of_step(line)
        if found is None:
            tell(line)
        else:
            ends.append(found)
            tell(_words(found))

    code, last = run_command(job.command(step, resume=resume), dict(job.env), heard)
    end = _words(ends[-1]) if ends else ""
    if code in (OK, PARTIAL):
        return end if ends and ends[-1]["status"] == WARN else ""
    said = "; ".join(line for line in last if _end_of_step(line) is None)
    why = "; ".join(filter(None, (end, said))) or "it printed nothing"
    raise TaskFailed(
        f"{step} failed with exit code {code}: {why}",
        code="builder_step_failed",
        exit_code=code if code > 0 else 1,
        is_final=code == USAGE,
    )


def works_at_once(job: BuilderJob) -> bool | None:
    """Whether steps of this job may run beside each other, on Postgres; None where that can't be seen here.

    An engine may hold templates where it will have paths and variables.
    """
    from penstock.app.builder.project_file import is_on_postgres

    return is_on_postgres(Path(job.job_path), dict(job.env))


def resumes(task: BridgeTask, attempt: int) -> bool:
    """Whether a task goes on with the newest run of its job.

    What nothing comes before begins a run when an engine's run begins. Otherwise the next night's run
    would find everything done.
    """
    return bool(task.after) or attempt > 1


def _end_of_step(line: str) -> dict[str, Any] | None:
    """What `--json` prints at the end of a step, if this line is that."""
    try:
        found = json.loads(line) if line.startswith("{") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) and {"step", "status", "counts"} <= set(found) else None


def _words(end: dict[str, Any]) -> str:
    counts = ", ".join(f"{number:,} {name}" for name, number in end["counts"].items() if number)
    first = [str(each.get("error") or each.get("cause")) for each in end.get("errors", [])][:1]
    details = "; ".join(filter(None, (end.get("reason"), counts, *first)))
    return f"{end['step']}: {end['status']}{f' ({details})' if details else ''}"


def run_command(
    arguments: Sequence[str], env: Mapping[str, str], tell: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Run a command of Penstock under a lifeline; answer with its exit code and its last lines."""
    secrets = environment_secrets() | secrets_among(env)
    last: list[str] = []
    with subprocess.Popen(  # noqa: S603 - our own command, and no shell
        [sys.executable, "-P", "-m", "penstock.bridges.lifeline", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **env},
        text=True,
        encoding="utf-8",
        errors="backslashreplace",
    ) as process:
        try:
            for line in process.stdout or ():
                text = redact(line.rstrip()[:LONGEST_LINE], secrets)
                last = [*last, text][-LAST_LINES:]
                tell(text)
            code = process.wait()
        except BaseException:
            _stop(process)
            raise
    return code, [line.strip() for line in last if line.strip()]


def _stop(process: subprocess.Popen[str]) -> None:
    """In good order, or after a while at once."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
