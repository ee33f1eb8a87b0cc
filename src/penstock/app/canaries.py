"""Canaries: a release performs a share of live work, and is rolled back if it is worse than the control."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.trial_releases import (
    plans_to_try,
    refuse_stream,
    refuse_unapproved,
    release_to_try,
)
from penstock.app.views.canaries import CanaryView, canary_view
from penstock.errors import Refused, Remedy, UsageError, nearest
from penstock.jobs.canary.guardrails import Limits
from penstock.jobs.canary.share import sources_in_share
from penstock.jobs.run import RunKind
from penstock.project.canary_watch import drop_controls
from penstock.settings.alert_rules import SEVERITIES
from penstock.store.canaries import CanaryRow, CanaryShare, CanarySource

if TYPE_CHECKING:
    from penstock.app.views.view import Page
    from penstock.project.release_plans import SourcePlans

ALERTS = (*SEVERITIES, "none")
MOST_MIN_PAGES = 1_000_000


class Canaries(Noun):
    """Releases on trial."""

    def start(
        self,
        release: str,
        *,
        source: str | None = None,
        percent: float | None = None,
        source_percent: float | None = None,
        min_pages: int = 50,
        pages: int = 400,
        alpha: float = 0.05,
        failures: float = 0.02,
        yields: float = 0.10,
        rejections: float = 0.05,
        duplicates: float = 0.02,
        quality: float = 0.02,
        diff: float | None = None,
        alerts: str = "high",
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> CanaryView:
        """Have a release perform a share, from the next run on: `percent` of the pages, or
        `source_percent` of the sources.

        Of pages, the same ones in each run, by a hash of their keys; of one `source` or of all. It is
        stopped and rolled back when a guardrail, `diff` (the share of records that it changes) or an alert
        of this severity says so, and passes after so many `pages`. Guardrails are looked at from
        `min_pages` on; each has its tolerance, and `alpha` is the probability that a harmless release is
        stopped. `dry_run` only checks, and answers what it would be.
        """
        limits = Limits(
            alpha, min_pages, failures, yields, rejections, duplicates, quality, diff, pages, alerts
        )
        _refuse_limits(limits)
        by_pages = _by_pages(percent, source_percent)
        share = percent if by_pages else source_percent
        if share is None or not 0 < share <= 100:
            raise UsageError("a share is more than 0 and at most 100 percent")
        name = release_to_try(self._project, release)
        refuse_unapproved(self._project, name)
        plans = plans_to_try(self._project, name, self._keys(source))
        # Of all sources, those whose runs end.
        keys: Sequence[str] = [
            key for key, each in plans.items() if source is not None or not each.is_stream
        ]
        for key in keys:
            refuse_stream(key, plans[key])
        if not keys:
            raise Refused("no source has runs that end")
        if by_pages:
            keys = self._with_pages_to_share(keys, plans, source is not None)
        salt = os.urandom(8).hex()
        chosen = set(keys if by_pages else sources_in_share(keys, share, salt))
        rows = [self._source(key, plans[key], is_in_share=key in chosen) for key in keys]
        kind: CanaryShare = "pages" if by_pages else "sources"
        about = (name, kind, share, salt, limits)
        if dry_run:
            now = self._store.now()
            row = CanaryRow(
                0, *about[:4], "active", limits, 0, None, now, None, who(actor), reason, ""
            )
            return canary_view(row, [(0, key, key in chosen, "") for key in keys], [], {})
        canary_id = self._store.canaries.begin(*about, rows, who(actor), reason)
        return self.get(canary_id)

    def list(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[CanaryView]:
        """Canaries, newest first."""
        size = size_of(limit)
        rows = self._store.canaries.newest(size + 1, place_of(cursor, int))
        return page_of(rows, size, self._view, lambda row: row.id)

    def each(self, *, limit: int | None = None) -> Iterator[CanaryView]:
        """Iterate over all of them, or the first `limit`, page by page."""
        return each_item(lambda cursor, size: self.list(cursor=cursor, limit=size), limit)

    def get(self, canary: int) -> CanaryView:
        """One canary, with its runs, the last look and the limits."""
        return self._view(self._row(canary))

    def stop(self, canary: int, *, actor: str | None = None, reason: str = "") -> CanaryView:
        """Stop a canary and roll it back: what it saved is undone, and the project's own files do that work.

        The rollback is done by whoever leads; `get` shows how far it is.
        """
        row = self._open(canary)
        if row.state == "stopping":
            return self._view(row)
        if not self._store.canaries.stop(row.id, row.state, who(actor), reason or "by hand"):
            raise self._moved(canary)
        return self.get(canary)

    def widen(
        self, canary: int, *, force: bool = False, actor: str | None = None, reason: str = ""
    ) -> CanaryView:
        """Have the release perform all runs of its sources; before it has passed, only with `force`."""
        row = self._open(canary)
        if row.state == "full":
            return self._view(row)
        if row.state == "stopping" or (row.state == "active" and not force):
            raise Refused(
                f"canary {canary} is {row.state}, and has not passed",
                "`force` widens it all the same" if row.state == "active" else "",
                code="canary_not_passed",
            )
        if not self._store.canaries.widen(row.id, row.state, who(actor), reason):
            raise self._moved(canary)
        return self.get(canary)

    def end(self, canary: int, *, actor: str | None = None, reason: str = "") -> CanaryView:
        """End a canary: its release is given nothing new, and what it saved stays."""
        row = self._open(canary)
        if row.state == "stopping":
            raise Refused(f"canary {canary} is being rolled back", code="canary_stopping")
        if not self._store.canaries.end(row.id, row.state, who(actor), reason):
            raise self._moved(canary)
        for run in self._store.canaries.runs(canary):
            if run.kind == RunKind.REPLAY and not run.is_ended:
                self._store.runs.cancel(run.id, who(actor), f"canary {canary} is ended")
        drop_controls(self._store, canary, who(actor))
        return self.get(canary)

    def _keys(self, source: str | None) -> Sequence[str]:
        if source is not None:
            return [self._project.source(source).key]
        return list(self._project.ready_sources())

    def _with_pages_to_share(
        self, keys: Sequence[str], plans: Mapping[str, SourcePlans], is_named: bool
    ) -> Sequence[str]:
        """Those sources whose pages can be shared out; of all sources, the others are left alone."""
        found: list[str] = []
        for key in keys:
            try:
                self._refuse_parting(key, plans[key])
                found.append(key)
            except Refused:
                if is_named or (key == keys[-1] and not found):
                    raise
        return found

    def _source(self, key: str, plans: SourcePlans, *, is_in_share: bool) -> CanarySource:
        text = msgspec.json.encode(plans.plans).decode()
        return CanarySource(self._project.source_ids[key], is_in_share, plans.version, text)

    def _refuse_parting(self, key: str, plans: SourcePlans) -> None:
        """Say why the pages of a source can't be shared out, if they can't."""
        source = self._project.source(key)
        graph = self._project.graph(source)
        gathers = [stage.name for stage in graph.stages if stage.is_gather] or list(plans.gathers)
        if gathers:
            raise Refused(
                f"{gathers[0]} of {key} gathers, and would see a part of the pages only",
                "take a share of the sources: --sources 5%",
                code="canary_gathers",
            )
        ours = {stage.name for stage in graph.stages if stage.unit == "page"}
        if not ours:
            raise Refused(
                f"the pipeline of {key} has no steps of pages to share out",
                "take a share of the sources: --sources 5%",
                code="canary_without_pages",
            )
        missing = sorted(ours - set(plans.pages))
        if missing:
            known = nearest(missing[0], plans.pages)
            raise Refused(
                f"the release has no step of pages {missing[0]!r} for {key}, {known}",
                "pages are handed over by the names of their steps",
                code="canary_steps_differ",
            )

    def _open(self, canary: int) -> CanaryRow:
        row = self._row(canary)
        if not row.is_open:
            raise Refused(f"canary {canary} is {row.state} already", code="canary_over")
        return row

    def _row(self, canary: int) -> CanaryRow:
        row = self._store.canaries.get(canary)
        if row is None:
            raise UsageError(
                f"there is no canary {canary}", code="no_canary", remedy=Remedy("canaries.list")
            )
        return row

    def _moved(self, canary: int) -> Refused:
        return Refused(
            f"canary {canary} has just become {self._row(canary).state}", code="canary_moved"
        )

    def _view(self, row: CanaryRow) -> CanaryView:
        store = self._store
        pages = {str(arm): number for arm, number in store.canaries.pages(row.id).items()}
        sources, runs = store.canaries.sources(row.id), store.canaries.runs(row.id)
        return canary_view(row, sources, runs, pages)


def _by_pages(percent: float | None, source_percent: float | None) -> bool:
    if (percent is None) == (source_percent is None):
        raise UsageError(
            "a share of what? `percent` of the pages, or `source_percent` of the sources",
            code="no_share",
        )
    return percent is not None


def _refuse_limits(limits: Limits) -> None:
    if not 0 < limits.alpha < 1:
        raise UsageError("alpha is a probability, such as 0.05")
    if not 1 <= limits.min_pages <= MOST_MIN_PAGES or limits.pages < limits.min_pages:
        raise UsageError("min_pages is at least 1, and pages no fewer")
    for name in ("failures", "yields", "rejections", "duplicates", "quality", "diff"):
        value = getattr(limits, name)
        if value is not None and not 0 <= value <= 1:
            raise UsageError(f"{name} is a share, from 0 to 1")
    if limits.alerts not in ALERTS:
        raise UsageError(f"no severity {limits.alerts!r}; {nearest(limits.alerts, ALERTS)}")
