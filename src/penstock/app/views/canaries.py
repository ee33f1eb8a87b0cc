"""Canaries and shadows as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.runs import RunView
from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.jobs.canary.guardrails import GuardResult, Look
    from penstock.store.canaries import CanaryRow, CanaryRun

__all__ = [
    "CanaryRunView",
    "CanaryView",
    "GuardView",
    "LimitsView",
    "LookView",
    "ShadowView",
    "canary_view",
]


class GuardView(View, frozen=True, kw_only=True):
    """One guardrail at a look: both rates, how much worse the canary is, and how likely that is by chance."""

    guard: str
    canary: float | None
    control: float | None
    worse_by: float
    tolerance: float
    p: float
    alpha: float
    is_crossed: bool


class LookView(View, frozen=True, kw_only=True):
    """All guardrails at the last look. `diff` is the share of records that the release changes."""

    number: int
    canary_pages: int
    control_pages: int
    diff: float | None
    guards: tuple[GuardView, ...]


class LimitsView(View, frozen=True, kw_only=True):
    """What stops a canary, and how many pages let it pass."""

    alpha: float
    min_pages: int
    pages: int
    failures: float
    yields: float
    rejections: float
    duplicates: float
    quality: float
    diff: float | None
    alerts: str


class CanaryRunView(View, frozen=True, kw_only=True):
    """A run of a canary, or one that it is compared with. `arm` is `canary` or `control`."""

    run: int
    source: str
    of_run: int | None
    arm: str
    kind: str
    state: str
    saved: int


class CanaryView(View, frozen=True, kw_only=True):
    """A canary: the release, its share, what was measured, and what became of it.

    `state` is `active`, `passed`, `full` (its release performs all of its sources), `stopping` (it is being
    rolled back), `stopped` or `ended`.
    """

    id: int = msgspec.field(name="canary")
    release: str
    share: str
    percent: float
    state: str
    sources: tuple[str, ...]
    canary_pages: int
    control_pages: int
    limits: LimitsView
    look: LookView | None
    runs: tuple[CanaryRunView, ...]
    began_at: Time
    ended_at: Time | None
    actor: str
    reason: str
    end_reason: str

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


class ShadowView(View, frozen=True, kw_only=True):
    """A shadow: the live run, and the run that has a release process the same pages, staged."""

    release: str
    live: RunView
    shadow: RunView
    is_new: bool


def canary_view(
    row: CanaryRow,
    sources: Sequence[tuple[int, str, bool, str]],
    runs: Sequence[CanaryRun],
    pages: Mapping[str, int],
) -> CanaryView:
    names = {source_id: key for source_id, key, _, _ in sources}
    is_all = row.state == "full"
    look = row.look
    if not row.is_open and look is not None:
        pages = {"canary": look.canary_pages, "control": look.control_pages}
    return CanaryView(
        id=row.id,
        release=row.release,
        share=row.share,
        percent=row.percent,
        state=row.state,
        sources=tuple(key for _, key, is_in, _ in sources if is_in or is_all),
        canary_pages=pages.get("canary", 0),
        control_pages=pages.get("control", 0),
        limits=LimitsView(
            **{name: getattr(row.limits, name) for name in LimitsView.__struct_fields__}
        ),
        look=None if look is None else _look_view(look),
        runs=tuple(_run_view(run, names) for run in runs),
        began_at=row.began_at,
        ended_at=row.ended_at,
        actor=row.actor,
        reason=row.reason,
        end_reason=row.end_reason,
    )


def _look_view(look: Look) -> LookView:
    return LookView(
        number=look.number,
        canary_pages=look.canary_pages,
        control_pages=look.control_pages,
        diff=look.diff,
        guards=tuple(_guard_view(each) for each in look.results),
    )


def _guard_view(result: GuardResult) -> GuardView:
    return GuardView(**msgspec.structs.asdict(result))


def _run_view(run: CanaryRun, names: Mapping[int, str]) -> CanaryRunView:
    return CanaryRunView(
        run=run.id,
        source=names.get(run.source_id, ""),
        of_run=run.of_run_id,
        arm=run.arm,
        kind=run.kind,
        state=run.state,
        saved=run.saved,
    )
