"""The size of answers: in rows and in bytes, whatever a project holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import Refused
from penstock.mcp.envelope import encoded

# About ten thousand tokens.
MOST_BYTES = 40_000
# The longest text and list within an answer; each next pair is tried if the one before is too large.
LENGTHS = ((4_000, 100), (1_000, 50), (300, 20), (80, 5), (20, 1))
Read = Callable[[int], Any]


@dataclass(slots=True)
class Cut:
    """What was cut off."""

    texts: int = 0
    items: int = 0

    def as_json(self) -> dict[str, int]:
        return {"texts": self.texts, "items": self.items}


def size_of(value: Any) -> int:
    return len(encoded(value).encode())


def page_within(read: Read, rows: int) -> tuple[Any, Cut]:
    """As many rows as there is room for; the page's cursor goes on behind the last one."""
    while True:
        page = read(rows)
        shown, cut = _cut(page, *LENGTHS[0])
        size = size_of(shown)
        if size <= MOST_BYTES:
            return shown, cut
        if rows == 1:
            # The cursor is needed whole.
            items, cut = within(page["items"])
            return {"items": items, "next": page["next"]}, cut
        rows = max(1, min(rows // 2, rows * MOST_BYTES // size))


def within(value: Any) -> tuple[Any, Cut]:
    """The value with long texts and lists cut, as little as needed."""
    for texts, items in LENGTHS:
        shown, cut = _cut(value, texts, items)
        if size_of(shown) <= MOST_BYTES:
            return shown, cut
    raise Refused(
        f"the answer has more than {MOST_BYTES:,} B even without its texts",
        "ask for less: a smaller limit, or one item at a time",
        code="answer_too_large",
    )


def _cut(value: Any, texts: int, items: int) -> tuple[Any, Cut]:
    cut = Cut()
    return _cut_within(value, texts, items, cut), cut


def _cut_within(value: Any, texts: int, items: int, cut: Cut) -> Any:
    if isinstance(value, str) and len(value) > texts:
        cut.texts += 1
        return f"{value[:texts]}… [{len(value) - texts} more characters]"
    if isinstance(value, dict):
        kept = list(value.items())[: max(items, MOST_FIELDS)]
        cut.items += len(value) - len(kept)
        # A name is as long as whoever wrote it liked; the fields of views have short ones.
        return {key[:texts]: _cut_within(each, texts, items, cut) for key, each in kept}
    if isinstance(value, list):
        cut.items += max(0, len(value) - items)
        return [_cut_within(each, texts, items, cut) for each in value[:items]]
    return value


# Views have fewer fields than this; a record may have thousands.
MOST_FIELDS = 50
