"""`defaults:` what holds for every source unless the source says otherwise."""

from __future__ import annotations

from dataclasses import replace

from penstock.settings.document import Entry, join
from penstock.settings.environment import overlay
from penstock.settings.section import describe

DEFAULTS = "defaults"


def with_defaults(document: Entry) -> Entry:
    """The document with its defaults laid under every source, by the rule of overlays; and without them.

    Mappings are merged key by key, at every depth. Everything else that a source has replaces the default:
    lists, text, numbers, and `schedule` as a whole. A key without a value takes the default away.
    """
    if not isinstance(document.value, dict) or DEFAULTS not in document.value:
        return document
    rest = {name: entry for name, entry in document.value.items() if name != DEFAULTS}
    defaults = _at_home(document.value[DEFAULTS], DEFAULTS)
    if defaults.value is None:
        return replace(document, value=rest)
    if not isinstance(defaults.value, dict):
        raise defaults.error(
            DEFAULTS, f"must be a mapping of keys of sources, not {describe(defaults)}"
        )
    sources = rest.get("sources")
    if sources is not None and isinstance(sources.value, dict):
        merged = {key: _under(defaults, entry) for key, entry in sources.value.items()}
        rest["sources"] = replace(sources, value=merged)
    return replace(document, value=rest)


def _under(defaults: Entry, source: Entry) -> Entry:
    if source.value is not None and not isinstance(source.value, dict):
        return source
    written = replace(source, value=source.value or {})
    # Named and placed as the source: what it lacks is missing there.
    return replace(overlay(defaults, written), file=source.file, line=source.line, home="")


def _at_home(entry: Entry, path: str) -> Entry:
    """The entry with the path at which it is written, so that an error leads there and not to a source."""
    value = entry.value
    if isinstance(value, dict):
        value = {name: _at_home(inner, join(path, name)) for name, inner in value.items()}
    elif isinstance(value, list):
        value = [_at_home(inner, f"{path}[{at}]") for at, inner in enumerate(value)]
    return replace(entry, value=value, home=path)
