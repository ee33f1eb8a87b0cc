"""Conditions on events: a field, and the value that it must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from penstock.errors import UsageError
from penstock.journal.registry import current_kind

FIELDS = ("kind", "actor", "source", "run", "job", "attempt", "worker", "origin")
DATA = "data."
_HINT = f"such as data.host=acme.com; the fields are {', '.join(FIELDS)} and data.NAME"


class Readable(Protocol):
    """What a condition looks at."""

    @property
    def kind(self) -> str: ...
    @property
    def actor(self) -> str: ...
    @property
    def source(self) -> str | None: ...
    @property
    def run_id(self) -> int | None: ...
    @property
    def job_id(self) -> int | None: ...
    @property
    def attempt(self) -> int | None: ...
    @property
    def worker(self) -> str | None: ...
    @property
    def origin(self) -> str | None: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


class Condition(msgspec.Struct, frozen=True):
    """`field` is one of FIELDS, or `data.` and the name of a field of the data."""

    field: str
    value: str

    @property
    def path(self) -> list[str]:
        """Where in the data the field is; empty for what is no part of the data."""
        return self.field.removeprefix(DATA).split(".") if self.field.startswith(DATA) else []

    def holds(self, event: Readable) -> bool:
        if self.field == "kind":
            wanted = current_kind(self.value)
            return event.kind == wanted or event.kind.startswith(f"{wanted}.")
        found: Any = event.data if self.path else _field(event, self.field)
        for name in self.path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found is not None and _text(found) == self.value


def condition(text: str) -> Condition:
    """A condition as a person writes it: `data.host=acme.com`."""
    field, equals, value = text.partition("=")
    is_known = field in FIELDS or (field.startswith(DATA) and all(field.split(".")))
    if not equals or not is_known:
        raise UsageError(f"{text!r} is no condition FIELD=VALUE", _HINT)
    if field in ("run", "job", "attempt") and not value.isdecimal():
        raise UsageError(f"{field} is a number, not {value!r}", _HINT)
    return Condition(field, value)


def _field(event: Readable, field: str) -> object:
    return getattr(event, {"run": "run_id", "job": "job_id"}.get(field, field))


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
