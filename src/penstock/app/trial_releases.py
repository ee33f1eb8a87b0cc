"""A release to try: found by its id, loaded in a process of its own, refused if it can't work here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.app.release_policy import policy_of
from penstock.errors import Refused, Remedy
from penstock.project.release_plans import SourcePlans, plans_of

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns


def release_to_try(project: Nouns, release: str) -> str:
    """The whole id of a release that can be tried here."""
    row = project.connection.releases.get(project.releases.get(release).id)
    if row is None:
        raise Refused(f"release {release} is gone", code="no_release")
    return row.id


def refuse_unapproved(project: Nouns, release: str) -> None:
    """Refuse to let a release do live work that never ran here and lacks the approvals of a promotion."""
    releases, needed = project.connection.releases, policy_of(project).approvals
    if not needed or releases.acts_of(release, 1):
        return
    found = len(releases.approvals(release))
    if found < needed:
        raise Refused(
            f"release {release[:12]} has {found} of the {needed} approvals that it needs for live work here",
            code="approvals_missing",
            remedy=Remedy("releases.approve", release[:12]),
        )


def plans_to_try(project: Nouns, release: str, sources: Sequence[str]) -> dict[str, SourcePlans]:
    """What the release would do for these sources; refused for the first one that it can do nothing for."""
    _refuse_without_secrets(project, release)
    found = plans_of(project.settings, release, sources)
    for key in sources:
        if found[key].error:
            raise Refused(
                f"release {release[:12]} can't perform {key}: {found[key].error}",
                code="release_broken",
                remedy=Remedy("releases.get", release[:12]),
            )
    return found


def refuse_stream(source: str, plans: SourcePlans) -> None:
    """What is compared has to come to an end."""
    if plans.is_stream:
        raise Refused(f"{source} is a stream, which does not end", code="is_stream")


def _refuse_without_secrets(project: Nouns, release: str) -> None:
    """A release holds no secrets; one that was written into its configuration is missing there."""
    row = project.connection.releases.get(release)
    if row is not None and row.manifest.masked:
        raise Refused(
            f"release {release[:12]} lacks what was left out as secret: {', '.join(row.manifest.masked)}",
            "write ${NAME} instead, set the variable, and make the release again",
            code="secret_left_out",
        )
