"""Metric families as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.views.view import View

if TYPE_CHECKING:
    from penstock.metrics.family import Family


class FamilyView(View, frozen=True, kw_only=True):
    """A metric family: its name as it is queried, its type, its labels, and where it is derived from."""

    name: str
    kind: str
    labels: list[str]
    about: str
    derived: str


def family_view(family: Family) -> FamilyView:
    return FamilyView(
        name=family.shown_name,
        kind=family.kind,
        labels=list(family.labels),
        about=family.help,
        derived=family.derived,
    )
