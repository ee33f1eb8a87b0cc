"""What the commands that steer have in common: telling what became of something."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.jobs import JobView
    from penstock.app.views.runs import RunView


def tell_run(
    project: Project, args: argparse.Namespace, run: RunView, said: str, *, is_new: bool
) -> None:
    """What became of a run. `is_new` is False when it was so already."""
    answer = {"run": run.id, "source": run.source, "kind": run.kind, "state": run.state}
    _tell(project, args, answer, said, is_new)


def tell_source(
    project: Project,
    args: argparse.Namespace,
    key: str | None,
    state: str,
    said: str,
    *,
    is_new: bool,
) -> None:
    """What became of a source; None is the whole project."""
    _tell(project, args, {"source": key, "state": state}, said, is_new)


def tell_job(
    project: Project, args: argparse.Namespace, job: JobView, said: str, *, is_new: bool
) -> None:
    answer = {"job": job.id, "run": job.run_id, "source": job.source, "state": job.state}
    _tell(project, args, answer, said, is_new)


def _tell(
    project: Project, args: argparse.Namespace, answer: dict[str, Any], said: str, is_new: bool
) -> None:
    if args.json:
        args.out.json({**answer, "is_new": is_new, "reason": args.reason})
        return
    args.out.line(said)
    if answer["state"] == "queued" and not project.overview().workers:
        args.out.note("No workers are running. Start one: penstock up")
