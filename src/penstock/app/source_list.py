"""The list of sources: what all of them share is asked for once, however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.app.schedule_words import words_of
from penstock.app.views.sources import BreachView, SourceDetail, breach_view, hold_view, known_of

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.settings import SourceSettings
    from penstock.store.rows import SourceRow

# So many broken promises are shown of each source on the average.
BREACHES = 100


def _pipeline(source: SourceSettings) -> str:
    """What reads it, in one word or two."""
    return source.pipeline or f"connector {source.connector}"


class SourceList:
    """All sources at one moment, or some, and what penstock.yaml says of them."""

    def __init__(self, project: Nouns, rows: Sequence[SourceRow] | None = None) -> None:
        _ = project.source_ids  # a source that is new in the file becomes known to the store
        store = project.connection
        self._project = project
        self._configured = project.settings.sources
        self._onboardings = {each.source: each for each in store.onboardings.all()}
        self.rows = store.sources.all() if rows is None else rows
        self._holds = {each.scope: each for each in store.sources.holds()}
        self._broken = {
            each.key: each for each in project.breakers.each() if each.state != "closed"
        }
        self._spent = {each.scope: each for each in project.budgets.exhausted()}
        self._cadences = {each.source: each for each in store.cadences.all()}
        self._breaches: dict[str, list[BreachView]] = defaultdict(list)
        only = self.rows[0].id if len(self.rows) == 1 else None
        most = BREACHES * len(self.rows)
        for breach in store.promises.breaches(only, open_only=True, limit=most):
            self._breaches[breach.source].append(breach_view(breach))

    def view(self, row: SourceRow) -> SourceDetail:
        key, configured = row.key, self._configured.get(row.key)
        return SourceDetail(
            **{**known_of(row), "schedule": self._schedule(key, configured)},
            lifecycle=self._project.source_state(key, self._onboardings.get(key), is_known=True),
            owner=self._onboardings[key].owner if key in self._onboardings else "",
            pipeline=_pipeline(configured) if configured is not None else None,
            breaker=self._broken.get(f"source:{key}"),
            held=[hold_view(self._holds[scope]) for scope in ("", key) if scope in self._holds],
            breaches=self._breaches.get(key, []),
            spent=self._spent.get(f"source:{key}") or self._spent.get("project"),
        )

    def _schedule(self, key: str, source: SourceSettings | None) -> str:
        if source is None:
            return ""
        cadence = self._cadences.get(key)
        told = [words_of(key, each, cadence) for each in source.schedules]
        return "; ".join(told) or "by hand only"
