"""What another environment has tested, for whoever takes it over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import Refused, UsageError
from penstock.project.running_release import other_workers
from penstock.releases.manifest import SHOWN

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.releases import ReleaseRow


def release_run_by(
    project: Nouns, source: str, wanted: str | None, *, strictly: bool = True
) -> tuple[ReleaseRow, dict[str, bytes]]:
    """What this environment runs, with all contents, each compared with its hash.

    `strictly`: refused if it is not the one that is wanted, or if its workers run something else.
    """
    if source == project.settings.environment_name:
        raise UsageError(f"{source} is this environment itself", code="same_environment")
    with type(project).open(project.settings.root, source) as other:
        store = other.connection
        running = store.releases.running()
        row = store.releases.get(running) if running else None
        if row is None:
            raise no_release(source)
        if strictly:
            _refuse_untested(other, row, wanted)
        return row, store.releases.contents(row)


def release_known_to(
    project: Nouns, source: str, wanted: str | None
) -> tuple[ReleaseRow, dict[str, bytes]]:
    """A release that this environment has, by its id or the beginning of it: by default what it runs."""
    if source == project.settings.environment_name:
        raise UsageError(f"{source} is this environment itself", code="same_environment")
    with type(project).open(project.settings.root, source) as other:
        row = other.connection.releases.get(other.releases.get(wanted).id)
        if row is None:
            raise no_release(source)
        return row, other.connection.releases.contents(row)


def refuse_without_configuration(row: ReleaseRow, environment: str) -> None:
    """A release comes into no environment that it has no configuration of."""
    if environment not in row.manifest.configuration:
        raise Refused(
            f"release {row.id[:SHOWN]} has no configuration for {environment}",
            f"make it again where penstock.{environment}.yaml is in the folder",
            code="no_configuration",
        )


def no_release(environment: str) -> UsageError:
    return UsageError(
        f"{environment} has no release yet",
        "make one, with a reason",
        code="no_release",
    )


def _refuse_untested(other: Nouns, row: ReleaseRow, wanted: str | None) -> None:
    name = other.settings.environment_name
    if wanted is not None and not row.id.startswith(wanted):
        raise Refused(
            f"the release of {name} is {row.id[:SHOWN]}, not {wanted[:SHOWN]}",
            "only what runs there was tested there",
            code="not_tested",
        )
    others = other_workers(other.connection, name)
    if others:
        raise Refused(
            f"a worker of {name} on {others[0].host} works with something else than {row.id[:SHOWN]}",
            "restart the workers there with the files of the release, and test it",
            code="not_tested",
        )
