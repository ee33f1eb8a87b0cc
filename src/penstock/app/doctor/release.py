"""The release: whether this folder, and the workers that are alive, are what the environment is to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.app.doctor.findings import Area
from penstock.app.project import Project
from penstock.app.views.doctor import CheckupFindingView
from penstock.app.views.releases import OtherWorkerView, RunningReleaseView
from penstock.errors import PenstockError
from penstock.project.running_release import other_release
from penstock.releases.manifest import SHOWN

AREA = Area("release")
Finding = Callable[[str, str], CheckupFindingView]


def look(project: Project) -> Iterator[CheckupFindingView]:
    settings = project.settings
    if not settings.is_on_postgres and not settings.store_file.exists():
        yield AREA.ok("no release: there is no database yet")
        return
    try:
        if project.store.plan().pending:
            yield AREA.skipped("the database has to be migrated first")
            return
        yield from _compared(project, project.releases.running())
    except PenstockError:
        yield AREA.skipped("the database can't be read")


def _compared(project: Project, running: RunningReleaseView) -> Iterator[CheckupFindingView]:
    environment, command = running.environment, _command(project)
    # Where the release is required, nothing else works.
    found: Finding = AREA.problem if running.is_required else AREA.warning
    if running.release is None:
        if running.is_required:
            promote = f"{command} promote --from ENV --to {environment} --reason WHY --yes"
            yield found(f"{environment} has no release, and its workers need one", promote)
        else:
            yield AREA.ok(f"{environment} has no release; its workers run the folder as it is")
        return
    other = other_release(project, project.connection)
    if other is None:
        yield AREA.ok(
            f"the release of {environment} is {running.release[:SHOWN]}, and so is this folder"
        )
    else:
        remedy = f"{command} diff shows it; {command} checkout --yes brings the folder to it"
        yield found(other.words, remedy)
    for worker in running.others:
        yield found(_words(worker, running), f"{command} checkout --yes there, and restart it")


def _words(worker: OtherWorkerView, running: RunningReleaseView) -> str:
    who = f"{worker.worker} on {worker.host}" + (f" (pid {worker.pid})" if worker.pid else "")
    release = (running.release or "")[:SHOWN]
    return f"worker {who} has loaded something else than {release}, the release of {running.environment}"


def _command(project: Project) -> str:
    environment = project.settings.environment
    return f"penstock --env {environment} release" if environment else "penstock release"
