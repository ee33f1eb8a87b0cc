"""The configuration as front ends see it: its mistakes, and its values with where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from penstock.app.views.view import Hidden, View

if TYPE_CHECKING:
    from penstock.settings.origins import Value


class MistakeView(View, frozen=True, kw_only=True):
    """Something that is wrong: with a setting, with a pipeline, or a variable that is not set.

    `file` and `line` are null where it stands in no line of a file.
    """

    kind: Literal["setting", "pipeline", "variable"]
    message: str
    file: str | None = None
    line: int | None = None
    key: str | None = None
    hint: str = ""


class CheckView(View, frozen=True, kw_only=True):
    """The result of a configuration check. `warnings` do not stop other sources."""

    sound: bool
    mistakes: list[MistakeView]
    warnings: list[MistakeView]
    sources: int
    pipelines: int
    secrets: Hidden[frozenset[str]] = frozenset()


class ValueView(View, frozen=True, kw_only=True):
    """A key, its value as the file has it, and where that comes from.

    `origin` is `file`, `overlay`, `defaults` or `default`. Text with variables is shown as it is written, and
    what is secret as `***`. `note` says what a default means, where the value does not.
    """

    key: str
    value: Any
    origin: str
    file: str | None
    line: int | None
    variables: list[str]
    note: str


class ConfigView(View, frozen=True, kw_only=True):
    """The merged configuration."""

    file: str
    environment: str | None
    values: list[ValueView]
    warnings: list[str]
    secrets: Hidden[frozenset[str]] = frozenset()


def value_view(value: Value) -> ValueView:
    return ValueView(
        key=value.key,
        value=msgspec.to_builtins(value.value),
        origin=value.origin,
        file=value.file or None,
        line=value.line or None,
        variables=list(value.variables),
        note=value.words,
    )
