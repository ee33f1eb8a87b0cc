"""What a steering command answers: one line for a person, one object for a program."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.store.rows import JobRow, RunRow


def tell_run(
    project: Project, args: argparse.Namespace, row: RunRow, said: str, *, is_new: bool
) -> None:
    """What became of a run. `is_new` is False when it was so already."""
    answer = {"run": row.id, "source": row.source, "kind": row.kind, "state": row.state}
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
    project: Project, args: argparse.Namespace, row: JobRow, said: str, *, is_new: bool
) -> None:
    answer = {"job": row.id, "run": row.run_id, "source": row.source, "state": row.state}
    _tell(project, args, answer, said, is_new)


def _tell(
    project: Project, args: argparse.Namespace, answer: dict[str, Any], said: str, is_new: bool
) -> None:
    if args.json:
        args.out.json({**answer, "is_new": is_new, "reason": args.reason})
        return
    args.out.line(said)
    if answer["state"] == "queued" and not project.store.overview().workers:
        args.out.note("nobody works now: penstock up --until-idle")
