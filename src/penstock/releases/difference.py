"""How two releases differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from penstock.releases.manifest import Manifest

Change = Literal["added", "removed", "changed"]


class Difference(msgspec.Struct, frozen=True):
    """One part that is not the same: `what` it is, and of which name."""

    what: str
    name: str
    change: Change
    before: str = ""
    after: str = ""


def differences(before: Manifest, after: Manifest) -> list[Difference]:
    """What differs, without configurations, which are compared key by key."""
    found = list(_parts("penstock", {"": before.penstock}, {"": after.penstock}))
    for what in ("files", "pipelines", "collections", "connectors", "site_schemas"):
        found += _parts(what, getattr(before, what), getattr(after, what))
    return found


def changed_keys(before: Any, after: Any, what: str) -> Iterator[Difference]:
    """The keys of two merged configurations that are not the same."""
    yield from _parts(what, dict(_leaves(before, "")), dict(_leaves(after, "")))


def _parts(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        change: Change = "added" if old is None else "removed" if new is None else "changed"
        yield Difference(what, name, change, old or "", new or "")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for at, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{at}]")
    else:
        yield path, value if isinstance(value, str) else msgspec.json.encode(value).decode()
