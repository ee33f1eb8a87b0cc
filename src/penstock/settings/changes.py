"""Changes: `acme.com.schedule.every=6h`, laid over a project's file without touching it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.errors import ConfigError, UsageError, nearest
from penstock.settings.document import Entry, join, one_line, read_value
from penstock.settings.limits import BREAKER_KEYS
from penstock.settings.schedule import POLICIES, USUAL
from penstock.settings.units import normalise_source

SAID = "--set"


def with_changes(document: Entry, changes: Sequence[str]) -> Entry:
    """The document with these changes, each `path=value`; a value that is left out takes the key away."""
    for change in changes:
        path, equals, text = change.partition("=")
        if not equals or not path.strip():
            hint = "write it as acme.com.schedule.every=6h"
            raise UsageError(one_line(f"{SAID} {change!r} is not KEY=VALUE"), hint)
        keys = _keys(document, path.strip())
        document = _changed(document, keys, _unplaced(read_value(text.strip(), SAID)), "")
    return document


def _keys(document: Entry, path: str) -> list[str]:
    """The keys that lead to what is meant; names of sources and hosts have dots of their own."""
    top = document.value if isinstance(document.value, dict) else {}
    first, _, rest = path.partition(".")
    if first == "hosts" and "." in rest:
        host, _, leaf = rest.rpartition(".")
        if leaf in BREAKER_KEYS and host.endswith(".breaker"):
            return ["hosts", host.removesuffix(".breaker"), "breaker", leaf]
        return ["hosts", host, leaf]
    if first != "sources" and (first in top or first in _TOP) and not _source(top, path):
        return path.split(".")
    inner = rest if first == "sources" else path
    key = _source(top, inner)
    if key is None:
        names = _sources(top)
        raise UsageError(
            one_line(f"{SAID}: there is no source or key {path!r}"),
            nearest(inner.rpartition(".")[0] or inner, [*names, *_TOP]),
        )
    return ["sources", key, *inner.split(".")[key.count(".") + 1 :]]


# Kept apart from `load.py`, which reads them: that module needs this one.
_TOP = ("worker", "retention", "retries", "budget", "cost", "hosts")


def _sources(top: dict[str, Entry]) -> list[str]:
    sources = top.get("sources")
    return list(sources.value) if sources is not None and isinstance(sources.value, dict) else []


def _source(top: dict[str, Entry], path: str) -> str | None:
    """The source with the longest name that this path begins with."""
    known = set(_sources(top))
    words = path.split(".")
    for length in range(len(words) - 1, 0, -1):
        try:
            key = normalise_source(".".join(words[:length]))
        except ConfigError:
            continue
        if key in known:
            return key
    return None


def _changed(entry: Entry, keys: Sequence[str], value: Entry, path: str) -> Entry:
    if not keys:
        return value
    first, rest = keys[0], keys[1:]
    where = join(path, first)
    if isinstance(entry.value, list) and path.endswith("schedule"):
        return _in_list(entry, keys, value, path)
    below = dict(entry.value) if isinstance(entry.value, dict) else {}
    if path.endswith(".schedule") and path.startswith("sources."):
        below = _without_rivals(below, first)
    inner = below.get(first, Entry(None, SAID, 0))
    below[first] = _changed(inner, rest, value, where)
    kept = below if not _is_gone(below[first]) else {k: v for k, v in below.items() if k != first}
    return replace(entry, value=kept)


def _unplaced(entry: Entry) -> Entry:
    """Without lines, which an option has none of."""
    value = entry.value
    if isinstance(value, dict):
        value = {name: _unplaced(inner) for name, inner in value.items()}
    elif isinstance(value, list):
        value = [_unplaced(inner) for inner in value]
    return replace(entry, value=value, line=0)


def _is_gone(entry: Entry) -> bool:
    return entry.value is None and entry.file == SAID


def _without_rivals(schedule: dict[str, Entry], key: str) -> dict[str, Entry]:
    """A schedule has one policy: whoever names another means to have that one instead."""
    if key not in POLICIES:
        return schedule
    rivals = {
        name
        for policy, own in POLICIES.items()
        if policy != key
        for name in (policy, *own)
        if name not in POLICIES[key]
    }
    has_clock = key == "cron" or "windows" in schedule or "blackouts" in schedule
    if not has_clock:
        rivals.add("timezone")
    return {name: entry for name, entry in schedule.items() if name not in rivals}


def _in_list(entry: Entry, keys: Sequence[str], value: Entry, path: str) -> Entry:
    items = entry.value if isinstance(entry.value, list) else []
    names = [_name(item) for item in items]
    name, rest = keys[0], keys[1:]
    if name not in names or not rest:
        hint = f"write {path.removeprefix('sources.')}.{names[0]}.KEY=VALUE" if names else ""
        raise UsageError(
            one_line(f"{SAID}: {path} has several schedules; there is none named {name!r}"), hint
        )
    place = names.index(name)
    # As if it stood alone, so that it is changed by the same rule.
    changed = _changed(items[place], rest, value, path)
    return replace(entry, value=[*items[:place], changed, *items[place + 1 :]])


def _name(schedule: Entry) -> str:
    named = schedule.value.get("name") if isinstance(schedule.value, dict) else None
    return str(named.value) if named is not None else USUAL.name
