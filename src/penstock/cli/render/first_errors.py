"""The first error of each cause for which a run's jobs are in quarantine, and where to see more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.cli.render.output import Output

SHOWN = 5
LONGEST_ERROR = 200


def tell_first_errors(project: Project, run_id: int, out: Output) -> None:
    """Nothing where nothing is in quarantine."""
    found = project.runs.causes(run_id, SHOWN + 1)
    for each in found[:SHOWN]:
        error = out.short(each.error or each.cause, LONGEST_ERROR)
        where = f"{count(each.jobs, 'job')}, the first: penstock jobs {each.job_id}"
        out.line(f"  {each.kind}: {error} ({where})")
    if found:
        more = "more causes, and " if len(found) > SHOWN else ""
        out.line(f"  {more}all of them: penstock quarantine list --run {run_id}")
