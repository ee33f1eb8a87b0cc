"""What a worker runs, beside what its environment is to run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, Refused
from penstock.journal.release_events import WorkersDiffer
from penstock.project.host import host_name
from penstock.releases.manifest import SHOWN, Manifest

if TYPE_CHECKING:
    from penstock.project.opened import Opened
    from penstock.store.store import Store

MOST_NAMED = 3
# What a worker runs if its folder can't be a release.
NO_RELEASE = "none"


@dataclass(frozen=True, slots=True)
class OtherRelease:
    """This folder is not the release of its environment: `parts` are what differs."""

    environment: str
    release: str | None
    parts: tuple[str, ...]

    @property
    def words(self) -> str:
        if self.release is None:
            return f"{self.environment} has no release, and this folder is not one"
        more = len(self.parts) - MOST_NAMED
        named = ", ".join(self.parts[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        return (
            f"the release of {self.environment} is {self.release[:SHOWN]}, and this folder is something "
            f"else: {named}"
        )


@dataclass(frozen=True, slots=True)
class OtherWorker:
    """A live worker that does not run the release of its environment."""

    worker: str
    host: str
    pid: int | None


def runs_of(project: Opened) -> str:
    """What a worker of this folder runs, for its announcement; nothing where there are no releases."""
    settings = project.settings
    has_releases = settings.environment is not None or settings.is_guarded
    if not has_releases and project.connection.releases.running() is None:
        return ""
    manifest = _of_folder(project)
    return NO_RELEASE if manifest is None else manifest.runs(project.settings.environment_name)


def other_release(project: Opened, store: Store) -> OtherRelease | None:
    """How this folder differs from what the environment runs; None if it is that, or nothing is asked."""
    settings, running = project.settings, store.releases.running()
    name = settings.environment_name
    if running is None:
        return OtherRelease(name, None, ()) if settings.release.is_required else None
    row = store.releases.get(running)
    folder = _of_folder(project)
    wanted = {} if row is None else row.manifest.parts(name)
    found = {} if folder is None else folder.parts(name)
    if wanted == found:
        return None
    parts = [each for each in {**wanted, **found} if wanted.get(each) != found.get(each)]
    return OtherRelease(name, running, tuple(parts))


def note_other_release(project: Opened, store: Store, tell: Callable[[str], None]) -> None:
    """Say on the output and in the journal what workers run; refuse it where the release is required."""
    other = other_release(project, store)
    if other is None:
        return
    is_refused = project.settings.is_guarded
    event = WorkersDiffer(
        environment=other.environment,
        release=other.release or "",
        parts=other.parts[:MOST_NAMED],
        is_refused=is_refused,
    )
    store.releases.note_other(event, f"{host_name()} (pid {os.getpid()})")
    if is_refused:
        raise refusal(other)
    tell(other.words)


def refusal(other: OtherRelease) -> Refused:
    if other.release is None:
        return Refused(other.words, "promote one", code="no_promoted_release")
    return Refused(
        other.words,
        "bring the folder to the release, or promote what is there",
        code="other_release",
    )


def other_workers(store: Store, environment: str) -> list[OtherWorker]:
    """The live workers that have announced something else than the environment's release.

    Not those that try another release, in a shadow or a canary: they perform nothing else. Nor those that
    began before there was any release, and have not said what they run.
    """
    running = store.releases.running()
    row = store.releases.get(running) if running else None
    if row is None:
        return []
    wanted = row.manifest.runs(environment)
    return [
        OtherWorker(code.worker, code.host, code.parent_pid)
        for code in store.workers.codes()
        if code.loaded is not None
        and not code.loaded.on_trial
        and code.loaded.runs not in ("", wanted)
    ]


def _of_folder(project: Opened) -> Manifest | None:
    """What the folder would be as a release; None if it can't be one."""
    from penstock.project.release_content import content_of

    try:
        return content_of(project, {}).manifest
    except PenstockError:
        return None
