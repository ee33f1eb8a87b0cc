"""What a statement that reads has answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# A statement of a person is given up after this.
LONGEST_S = 30.0


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """The names of the columns, and the first rows; `has_more`: there were others."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    has_more: bool
