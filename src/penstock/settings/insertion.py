"""Adding a source to penstock.yaml: its lines are put in, and no other line is touched.

The file is not written anew from what was read of it, so comments, quotes and the order of keys stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from penstock.errors import Refused
from penstock.settings.document import read_document
from penstock.settings.section import plain


def with_source(text: str, name: str, keys: dict[str, Any]) -> str:
    """The text of the file with one source more; refused where its `sources` can't be added to."""
    lines = text.splitlines()
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is not None and not isinstance(node, yaml.MappingNode):
        raise _by_hand(name, keys)
    found = {key.value: (key, value) for key, value in node.value} if node is not None else {}
    if "sources" not in found:
        gap = [""] if lines and lines[-1].strip() else []
        return "\n".join([*lines, *gap, "sources:", *_lines(name, keys, 2)]) + "\n"
    key, sources = found["sources"]
    if isinstance(sources, yaml.ScalarNode) and not sources.value:
        at, indent = key.end_mark.line + 1, 2
    elif isinstance(sources, yaml.MappingNode) and sources.value and not sources.flow_style:
        indent = sources.value[0][0].start_mark.column
        at = _after_comments(lines, _last_line(sources) + 1, indent)
    else:
        raise _by_hand(name, keys)
    return "\n".join([*lines[:at], *_lines(name, keys, indent), *lines[at:]]) + "\n"


def is_the_same_but_for(before: Path, after: Path, name: str) -> bool:
    """Whether a file says what another says, and one source more."""
    old, new = plain(read_document(before)), plain(read_document(after))
    old, new = old or {}, dict(new)
    sources = dict(new.pop("sources", None) or {})
    sources.pop(name, None)
    kept = {key: value for key, value in old.items() if key != "sources"}
    return bool(kept == new and (old.get("sources") or {}) == sources)


def _last_line(node: yaml.Node) -> int:
    """The line that the last value of a node ends in."""
    while (
        isinstance(node, (yaml.MappingNode, yaml.SequenceNode))
        and node.value
        and not node.flow_style
    ):
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    mark = node.end_mark
    return int(mark.line if mark.column or mark.line == node.start_mark.line else mark.line - 1)


def _after_comments(lines: list[str], at: int, indent: int) -> int:
    """Past the comments of the last source: those that are indented deeper than its name."""
    last = at
    for number, line in enumerate(lines[at:], at + 1):
        text = line.lstrip()
        if text and (not text.startswith("#") or len(line) - len(text) <= indent):
            break
        last = number if text else last
    return last


def _lines(name: str, keys: dict[str, Any], indent: int) -> list[str]:
    written: str = yaml.safe_dump(
        {name: keys}, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )
    return [" " * indent + line for line in written.splitlines()]


def _by_hand(name: str, keys: dict[str, Any]) -> Refused:
    lines = "\n".join(_lines(name, keys, 2))
    return Refused(f"`sources` of this file can't be added to; write it yourself:\n{lines}")
