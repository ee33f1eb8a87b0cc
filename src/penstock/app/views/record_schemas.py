"""Schemas of collections as front ends see them."""

from __future__ import annotations

from penstock.app.views.view import Content, ContentKey, View


class MisfitView(View, frozen=True, kw_only=True):
    """A record that does not fit the schema of its collection; `problem` begins with the path of a field."""

    key: ContentKey[str]
    source: str
    run: int
    problem: Content[str]


class SchemaCheckView(View, frozen=True, kw_only=True):
    """How many records were tested, how many do not fit, and the first of those."""

    collection: str
    records: int
    misfits: int
    shown: list[MisfitView]
