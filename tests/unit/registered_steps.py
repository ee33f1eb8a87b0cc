"""Steps that the registries of tests name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def begin() -> Iterator[dict[str, Any]]:
    yield from ({"kind": "row", "n": n} for n in range(3))
    yield {"kind": "link", "n": 9}


def passed(item: dict[str, Any]) -> dict[str, Any]:
    return item


def gathered(ctx: Any) -> None: ...


def saved(item: dict[str, Any], ctx: Any) -> None:
    ctx.save("seen", key=item["n"], data={**item, "shown": ctx.params["shown"]})
