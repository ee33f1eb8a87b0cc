"""How two releases differ, part by part and key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.app.views.releases import ReleaseDiffView, difference_view
from penstock.releases.difference import changed_keys, differences
from penstock.releases.manifest import Manifest

NOTHING = Manifest(project="", penstock="", configuration={})


class Side(msgspec.Struct, frozen=True):
    """A release, or the folder as it is now, which has no id yet; and its configuration."""

    release: str | None
    manifest: Manifest
    configuration: dict[str, Any]


def side_of(
    release: str | None, manifest: Manifest, contents: Mapping[str, bytes], environment: str
) -> Side:
    name = manifest.configuration.get(environment)
    document = msgspec.json.decode(contents[name]) if name else {}
    return Side(release, manifest, document)


def diff_of(before: Side | None, after: Side, environment: str) -> ReleaseDiffView:
    """What changes for this environment from one to the other; without the first, everything is new."""
    old = before or Side(None, NOTHING, {})
    found = [
        *changed_keys(old.configuration, after.configuration, "configuration"),
        *differences(old.manifest, after.manifest),
    ]
    return ReleaseDiffView(
        before=old.release,
        after=after.release,
        environment=environment,
        is_same=not found,
        differences=[difference_view(each) for each in found],
    )
