"""Connectors as front ends see them."""

from __future__ import annotations

from typing import Any

from penstock.app.views.view import View


class ConnectorView(View, frozen=True, kw_only=True):
    """A connector: what it reads, the extra it needs, and whether that is installed."""

    name: str
    summary: str
    extra: str | None
    installed: bool


class ConnectorKeyView(View, frozen=True, kw_only=True):
    """A key of a source that has this connector."""

    key: str
    about: str
    default: str
    is_required: bool


class ConnectorDetail(ConnectorView, frozen=True, kw_only=True):
    """A connector with its keys and the shortest source that works."""

    about: str
    deletions: str
    concurrency: int | None
    retry: str
    keys: list[ConnectorKeyView]
    example: dict[str, Any]


class SampleView(View, frozen=True, kw_only=True):
    """A document that a source would bring."""

    key: str
    title: str
    text: str


class ProbeView(View, frozen=True, kw_only=True):
    """What a source would bring now. `verdict` is `ok`, `empty` (nothing is there) or `failed`.

    A failure has its `kind`, such as `auth`, and a `reason`; some items may fail where others come.
    `facts` is what the connector says of the place. `is_hidden`: the source is private.
    """

    source: str
    connector: str | None
    verdict: str
    kind: str
    reason: str
    facts: dict[str, Any]
    requests: int
    notes: list[str]
    samples: list[SampleView]
    is_hidden: bool


class AddedView(View, frozen=True, kw_only=True):
    """A source that was added, or would be: what it was recognised by, its keys, and its first documents."""

    source: str
    connector: str
    keys: dict[str, Any]
    why: str
    facts: dict[str, Any]
    samples: list[SampleView]
    is_written: bool
