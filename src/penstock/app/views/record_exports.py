"""Exports of records as front ends see them: the manifest of one."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.app.views.view import Time, View


class ColumnView(View, frozen=True, kw_only=True):
    """A column of an export: `type` is boolean, integer, number, string, time, or json as text."""

    name: str
    type: str
    nulls: int


class ManifestView(View, frozen=True, kw_only=True):
    """What an export has written, and the `cursor` that the next incremental one begins at.

    `records` are present, `deletions` are the removed ones; both are lines of the file. `versions_sha256`
    is chained over the key and version of each line: two exports of the same versions have the same one.
    `private_left_out` counts records of private sources, which were not exported.
    """

    manifest: int
    project: str
    collection: str
    format: str
    to: str
    bytes: int
    sha256: str
    records: int
    deletions: int
    private_left_out: int
    since: str | None
    run: int | None
    cursor: str
    versions_sha256: str
    exported_at: Time
    penstock: str
    columns: list[ColumnView]
    schema: dict[str, Any]
    is_resumed: bool | msgspec.UnsetType = msgspec.UNSET
