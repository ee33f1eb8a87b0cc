"""Releases as front ends see them: what an environment runs, how it came there, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from penstock.app.views.view import Time, View
from penstock.releases.manifest import SHOWN

if TYPE_CHECKING:
    from penstock.releases.difference import Difference
    from penstock.store.releases import ApprovalRow, ReleaseActRow, ReleaseRow


class ReleaseActView(View, frozen=True, kw_only=True):
    """How a release came into this environment: `act` is `create`, `promote` or `rollback`.

    `before` is the release that it ran until then; `from_environment` where a promoted one came from.
    """

    id: int = msgspec.field(name="number")
    act: Literal["create", "promote", "rollback"]
    release: str
    before: str | None
    environment: str
    from_environment: str | None
    at: Time
    actor: str
    reason: str
    approved_by: list[str]
    is_running: bool


class ReleaseMoveView(ReleaseActView, frozen=True, kw_only=True):
    """What a command has done; `is_new` is false if the environment ran the release already.

    `notes` are what to know of the release, such as secrets that were left out of it.
    """

    is_new: bool
    notes: list[str]


class ReleaseFetchView(View, frozen=True, kw_only=True):
    """A release that was copied from another environment to be tried; `is_new` is false if it was here."""

    release: str
    environment: str
    from_environment: str
    is_new: bool


class ApprovalView(View, frozen=True, kw_only=True):
    """Somebody approves a release for this environment."""

    release: str
    environment: str
    actor: str
    at: Time
    reason: str


class ReleaseApprovalView(View, frozen=True, kw_only=True):
    """A release with its approvals and how many it needs; `is_new` is false for who approved it already."""

    release: str
    environment: str
    approvals: list[ApprovalView]
    needed: int
    is_new: bool


class ReleaseView(View, frozen=True, kw_only=True):
    """A release and what it is made of, by the hash or version of each part.

    `configuration` is the merged configuration of this environment, in which variables stand by their names.
    """

    id: str = msgspec.field(name="release")
    environment: str
    is_running: bool
    made_in: str
    created_at: Time
    actor: str
    reason: str
    penstock: str
    environments: list[str]
    configuration: dict[str, Any] | None
    variables: list[str]
    masked: list[str]
    files: dict[str, str]
    pipelines: dict[str, str]
    collections: dict[str, str]
    connectors: dict[str, str]
    site_schemas: dict[str, str]
    approvals: list[ApprovalView]


class CheckoutView(View, frozen=True, kw_only=True):
    """Which files of a release a folder lacks (`adds`), and which it has otherwise (`overwrites`)."""

    release: str
    folder: str
    adds: list[str]
    overwrites: list[str]


class DifferenceView(View, frozen=True, kw_only=True):
    """One part that is not the same: `what` it is (`configuration`, `files` …), its name, and the change."""

    what: str
    name: str
    change: Literal["added", "removed", "changed"]
    before: str
    after: str


class ReleaseDiffView(View, frozen=True, kw_only=True):
    """How two releases differ for one environment; null is the folder as it is now, or no release yet."""

    before: str | None
    after: str | None
    environment: str
    is_same: bool
    differences: list[DifferenceView]


class RunningReleaseView(View, frozen=True, kw_only=True):
    """What this environment runs, since when and by whom, and the live workers that run something else.

    `is_required` says that workers refuse to work then.
    """

    environment: str
    release: str | None
    since: Time | None
    by: str | None
    is_required: bool
    others: list[OtherWorkerView]


class ReleasePolicyView(View, frozen=True, kw_only=True):
    """What a release needs before it comes into this environment, and the approvals that wait for it.

    `after` is the only environment that releases may come from; null is any.
    """

    environment: str
    approvals_needed: int
    after: str | None
    approvals: list[ApprovalView]


class OtherWorkerView(View, frozen=True, kw_only=True):
    """A worker that does not run its environment's release."""

    worker: str
    host: str
    pid: int | None


def act_view(row: ReleaseActRow, environment: str, running: str | None) -> ReleaseActView:
    return ReleaseActView(**_act(row, environment, running))


def move_view(
    row: ReleaseActRow,
    environment: str,
    running: str | None,
    *,
    is_new: bool,
    notes: Sequence[str] = (),
) -> ReleaseMoveView:
    return ReleaseMoveView(**_act(row, environment, running), is_new=is_new, notes=[*notes])


def _act(row: ReleaseActRow, environment: str, running: str | None) -> dict[str, Any]:
    return {
        "id": row.id,
        "act": row.verb,
        "release": row.release_id,
        "before": row.before_id,
        "environment": environment,
        "from_environment": row.from_environment,
        "at": row.at,
        "actor": row.actor,
        "reason": row.reason,
        "approved_by": [each.actor for each in row.approvals],
        "is_running": row.release_id == running,
    }


def approval_view(row: ApprovalRow, release: str, environment: str) -> ApprovalView:
    return ApprovalView(
        release=release, environment=environment, actor=row.actor, at=row.at, reason=row.reason
    )


def release_view(
    row: ReleaseRow,
    environment: str,
    running: str | None,
    configuration: dict[str, Any] | None,
    approvals: Sequence[ApprovalRow],
) -> ReleaseView:
    manifest = row.manifest
    return ReleaseView(
        id=row.id,
        environment=environment,
        is_running=row.id == running,
        made_in=row.environment,
        created_at=row.created_at,
        actor=row.actor,
        reason=row.reason,
        penstock=manifest.penstock,
        environments=[*manifest.environments],
        configuration=configuration,
        variables=manifest.variables.get(environment, []),
        masked=manifest.masked,
        files=manifest.files,
        pipelines=manifest.pipelines,
        collections=manifest.collections,
        connectors=manifest.connectors,
        site_schemas=manifest.site_schemas,
        approvals=[approval_view(each, row.id, environment) for each in approvals],
    )


def difference_view(found: Difference) -> DifferenceView:
    return DifferenceView(**msgspec.structs.asdict(found))


def short(release: str | None) -> str:
    """As much of an id as people are shown."""
    return release[:SHOWN] if release else "none"
