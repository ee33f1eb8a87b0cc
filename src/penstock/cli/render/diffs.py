"""A difference between records, for people in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.cli.render.tables import column, key_column, text, whole
from penstock.cli.render.wording import count, cut, shortened_inside

if TYPE_CHECKING:
    from penstock.app.views.replays import ChangeView, FieldView, RejectsShiftView, TotalsView
    from penstock.cli.render.output import Output

COLUMNS = (
    *(
        text("what", 0, 8),
        key_column("collection", 3, 8),
        key_column("key", least=12),
        key_column("field", least=8),
    ),
    *(text("before", 1, 14), text("after", 0, 14)),
)
LONGEST_KEY, LONGEST_VALUE = 60, 80
MOST_FIELDS = 8
OBSTACLES = {
    "conflict": "left alone: changed by another run since",
    "newer": "left alone: a later page is known",
}


def tell_totals(out: Output, totals: TotalsView) -> None:
    """All of it in a few lines."""
    out.fields(
        [
            ("removed", totals.removed),
            ("changed", totals.changed),
            ("added", totals.added),
            ("same", totals.same),
            ("conflicts", _unless_zero(totals.conflicts, "changed by other runs since")),
            ("newer", _unless_zero(totals.newer, "known from later pages")),
            ("scores", score_words(totals)),
        ]
    )
    if totals.fields:
        out.line()
        fields = list(totals.fields.items())
        out.table((key_column("field"), whole("records")), fields[:MOST_FIELDS])
        if len(fields) > MOST_FIELDS:
            out.line(f"and {count(len(fields) - MOST_FIELDS, 'more field')}")


def tell_changes(out: Output, changes: Iterable[ChangeView]) -> None:
    rows = [row for change in changes for row in _rows(change, out.as_json)]
    if rows:
        out.line()
        out.table(COLUMNS, rows)


def tell_rejects(out: Output, rejected: RejectsShiftView, limit: int) -> None:
    if not rejected.now and not rejected.before:
        return
    now, before = rejected.only_now, rejected.only_before
    out.line()
    out.line(
        f"rejected: {rejected.now} now, {rejected.before} before; "
        f"{now.count} only now, {before.count} only before"
    )
    rows = [
        (when, each["stage"], shortened_inside(each["key"], LONGEST_KEY), each.get("reason") or "")
        for when, found in (("now", now), ("before", before))
        for each in found.first[:limit]
    ]
    if rows:
        out.table((whole("only"), column("stage", 1), "key", "reason"), rows)


def score_words(totals: TotalsView) -> str:
    scores = totals.scores
    if not scores.up and not scores.down:
        return ""
    mean = f"{scores.mean_shift:+.3g} on the average"
    return f"{scores.up} up, {scores.down} down, {mean}"


def change_words(change: ChangeView) -> str:
    return OBSTACLES[change.left_alone] if change.left_alone else change.kind


def _unless_zero(number: int, words: str) -> str:
    return f"{number} left alone ({words})" if number else ""


def _rows(change: ChangeView, as_json: Callable[[Any], str]) -> Iterator[tuple[object, ...]]:
    about: tuple[object, ...] = (
        change_words(change),
        change.collection,
        shortened_inside(change.key, LONGEST_KEY),
    )
    if change.kind != "changed":
        yield (*about, "", *(_whole(change, side, as_json) for side in ("before", "after")))
        return
    for field in change.fields:
        yield (*about, *_cells(field, as_json))
        about = ("", "", "")
    if change.score_before != change.score_after:
        yield (*about, "(score)", _score(change.score_before), _score(change.score_after))


def _whole(change: ChangeView, side: str, as_json: Callable[[Any], str]) -> str:
    """A record that is added or removed, as it is on the side on which it is."""
    fields = {field.field: getattr(field, side) for field in change.fields}
    there = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    return cut(as_json(there), LONGEST_VALUE) if there else ""


def _cells(field: FieldView, as_json: Callable[[Any], str]) -> tuple[str, str, str]:
    before, after = (
        "" if value is msgspec.UNSET else cut(as_json(value), LONGEST_VALUE)
        for value in (field.before, field.after)
    )
    return field.field, before, after


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:g}"
