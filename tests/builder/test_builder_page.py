"""docs/builder.md says what the code does: its keys and figures."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from penstock.builder.city.labelled import HELD_OUT_SEED, labelled_rows, measure
from penstock.builder.job import Job, Part
from penstock.builder.quality import DEFAULT_TARGETS
from penstock.builder.registry import builder

PAGE = Path(__file__).parents[2] / "docs" / "builder.md"
BEGIN, END = "<!-- keys -->\n", "<!-- end of keys -->"


def page() -> str:
    return PAGE.read_text("utf-8")


def keys_table() -> str:
    """The keys of a job with their meanings and defaults."""
    rows = "".join(f"| {name} | {meaning} | {usual} |\n" for name, meaning, usual in _keys(Job, ""))
    return f"\n| key | meaning | default |\n|---|---|---|\n{rows}\n"


def _keys(part: type[msgspec.Struct], above: str) -> Iterator[tuple[str, str, str]]:
    hints = get_type_hints(part, include_extras=True)
    for field in msgspec.structs.fields(part):
        inner = _part_in(hints[field.name])
        meaning = _meaning(hints[field.name])
        is_many = inner is not None and field.default == ()
        if inner is None or is_many:
            yield f"`{above}{field.name}`", meaning, _usual(field)
        if inner is not None:
            yield from _keys(inner, f"{above}{field.name}{'[]' if is_many else ''}.")


def _part_in(hint: Any) -> type[Part] | None:
    if isinstance(hint, type) and issubclass(hint, Part):
        return hint
    found = (_part_in(each) for each in get_args(hint) if get_origin(hint) is not None)
    return next((each for each in found if each is not None), None)


def _meaning(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        _, *notes = get_args(hint)
        for each in notes:
            if isinstance(each, msgspec.Meta) and each.description:
                return each.description.replace("|", "\\|")
    if get_origin(hint) in (Union, types.UnionType):
        return next((text for each in get_args(hint) if (text := _meaning(each))), "")
    return ""


def _usual(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    if default in (None, "", (), {}) or isinstance(default, msgspec.Struct):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{', '.join(default) if isinstance(default, tuple) else default}`"


def test_the_page_has_all_keys_of_a_job() -> None:
    _, _, rest = page().partition(BEGIN)
    found, _, _ = rest.partition(END)
    assert found == keys_table(), keys_table()
    assert " |  | " not in keys_table(), "a key without a meaning"


def test_the_page_names_every_step_profile_feature_and_target() -> None:
    text = page()
    for name in (*builder.steps, *builder.profiles, *builder.features, *DEFAULT_TARGETS):
        assert f"`{name}`" in text, name
    assert f"{len(builder.steps)} steps" in text


def test_the_page_has_the_figures_of_the_threshold() -> None:
    rows = labelled_rows(HELD_OUT_SEED)
    assert f"On {len(rows):,} other rows" in page()
    for text, precision, recall in re.findall(
        r"\| \**(0\.\d)\** \| ([\d.]+) \| ([\d.]+) \|\n", page()
    ):
        found = measure(rows, float(text))
        assert (precision, recall) == (f"{found.precision:.4f}", f"{found.recall:.4f}")
