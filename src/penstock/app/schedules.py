"""Schedules: the classes of sources whose cadence is `auto`, and a person's hand in them."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_within
from penstock.app.views.schedules import CadenceView, cadence_view
from penstock.app.views.view import Page
from penstock.errors import UsageError, nearest
from penstock.project import Project
from penstock.schedules.auto import LADDER, Level, is_auto
from penstock.schedules.definition import policy_words
from penstock.settings import ScheduleSettings
from penstock.store.cadences import CadenceRow


class Schedules(Noun):
    """The schedules of sources."""

    def cadences(
        self, source: str | None = None, *, cursor: str | None = None, limit: int = USUAL
    ) -> Page[CadenceView]:
        """The class of each source whose cadence is `auto`, or of this one, by source."""
        key = None if source is None else self._auto(source)
        rows = [row for row in self._store.cadences() if key in (None, row.source)]
        rows.sort(key=lambda row: row.source)
        return page_within(rows, cursor, limit, cadence_view, lambda row: row.source, str)

    def each_cadence(self, source: str | None = None) -> Iterator[CadenceView]:
        """All of them, as you go."""
        return each_item(lambda cursor, limit: self.cadences(source, cursor=cursor, limit=limit))

    def set_cadence(
        self, source: str, level: str, *, actor: str | None = None, reason: str = ""
    ) -> CadenceView:
        """Give a source another class: `low`, `medium` or `high`; or accept the one that is proposed.

        It is judged from there by the runs that come. Refused outside what penstock.yaml allows.
        """
        from penstock.engine.leader.cadences import set_cadence

        key = self._auto(source)
        return cadence_view(set_cadence(self._project, key, _level(level), who(actor), reason))

    def undo_cadence(
        self, source: str, *, actor: str | None = None, reason: str = ""
    ) -> CadenceView:
        """Give a source the class back that it had before."""
        from penstock.engine.leader.cadences import undo_cadence

        key = self._auto(source)
        return cadence_view(undo_cadence(self._project, key, who(actor), reason))

    def _auto(self, source: str) -> str:
        """The key of a source, whose cadence must be `auto`."""
        from penstock.engine.leader.cadences import auto_sources

        key = self._project.source_key(source) or ""
        if key not in auto_sources(self._project):
            raise UsageError(
                f"the cadence of {key} is not auto",
                "schedule: {cadence: auto}",
                code="cadence_not_auto",
            )
        return key


def _level(text: str) -> Level:
    for level in LADDER:
        if level == text:
            return level
    raise UsageError(f"there is no class {text!r}", nearest(text, LADDER), code="no_class")


def words_now(project: Project, key: str, settings: ScheduleSettings) -> str:
    """The policy of a schedule in words, with the class that its source has now where it is auto."""
    store = project.connection
    found = store.cadences(project.source_ids[key]) if is_auto(settings) else []
    return words_of(key, settings, found[0] if found else None)


def words_of(key: str, settings: ScheduleSettings, cadence: CadenceRow | None) -> str:
    """The same, where the class of the source is known already."""
    if cadence is None or not is_auto(settings):
        return policy_words(settings, key)
    from penstock.engine.leader.cadences import standing_of

    return policy_words(settings, key, standing_of(cadence), cadence.proposed)
