"""A forecast as front ends see it: what the next days would bring, as the project is and as it would be."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.app.views.view import Hidden, View
from penstock.engine.simulation.figures import (
    BudgetFigures,
    Counts,
    Figures,
    HostFigures,
    NotSimulated,
    SourceFigures,
)
from penstock.errors import Remedy

__all__ = [
    "BudgetFigures",
    "Counts",
    "Figures",
    "ForecastNote",
    "ForecastView",
    "HostFigures",
    "NotSimulated",
    "SourceFigures",
]


class ForecastNote(View, frozen=True, kw_only=True):
    """One thing that a forecast rests on, or leaves out.

    `code` says what it is about, and does not change: `no_sources`, `nothing_starts`, `project_held`,
    `sources_held`, `sources_paused`, `no_history`, `one_host`, `stopped_early`, `assumed`, `host_requests`,
    `not_simulated`. `side` is set where it holds for one side alone. `remedy` is the verb that would change
    it.
    """

    code: str
    text: str
    side: Literal["now", "changed"] | None = None
    remedy: Remedy | None = None


class ForecastView(View, frozen=True, kw_only=True):
    """What would happen in the next days: `now` with penstock.yaml as it is, `changed` with the changes, if
    any.

    Figures are counts of starts, runs, requests and broken promises, the use of budgets and worker slots, and
    the same by source. `notes` say what they rest on and what is not simulated. Not in the JSON: secrets of
    the configuration, to be masked wherever notes and changes are shown.
    """

    changes: list[str] = msgspec.field(name="set")
    notes: list[ForecastNote]
    now: Figures
    changed: Figures | msgspec.UnsetType = msgspec.UNSET
    secrets: Hidden[frozenset[str]] = frozenset()

    @property
    def sides(self) -> dict[Literal["now", "changed"], Figures]:
        """The one side, or both."""
        if isinstance(self.changed, msgspec.UnsetType):
            return {"now": self.now}
        return {"now": self.now, "changed": self.changed}
