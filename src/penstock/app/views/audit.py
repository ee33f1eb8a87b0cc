"""Seals of the journal, and what a verification has found, as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.audit.chain import Seal
    from penstock.audit.verification import Finding


class HeadView(View, frozen=True, kw_only=True):
    """The head of the chain: the last seal, and how many events come behind it, up to 100,000.

    Seal 0 is no seal at all.
    """

    project: str
    seal: int
    last_event: int
    hash: str
    at: Time
    unsealed: int


class FindingView(View, frozen=True, kw_only=True):
    """Something that is not as it was sealed: which event or seal, and what was done to it."""

    what: str
    event: int | None
    seal: int | None
    text: str


class VerificationView(View, frozen=True, kw_only=True):
    """What a verification has found; `is_sound` if it found nothing wrong.

    `events` were compared with their seals. Retention has dropped `pruned_events`, whose seals are there;
    personal data was erased from `erased`, each by an event that says by whom and why. `unsealed` are too
    new to be sealed.
    """

    is_sound: bool = msgspec.field(name="sound")
    seals: int
    events: int
    pruned_seals: int
    pruned_events: int
    pruned_until: Time | None
    erased: int
    unsealed: int
    anchors: int
    head: HeadView
    findings: list[FindingView]


def head_view(project: str, seal: Seal | None, unsealed: int) -> HeadView:
    if seal is None:
        return HeadView(project=project, seal=0, last_event=0, hash="", at=0.0, unsealed=unsealed)
    return HeadView(
        project=project,
        seal=seal.number,
        last_event=seal.last_id,
        hash=seal.hash,
        at=seal.at,
        unsealed=unsealed,
    )


def finding_view(finding: Finding) -> FindingView:
    return FindingView(**msgspec.structs.asdict(finding))
