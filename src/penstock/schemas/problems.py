"""What does not fit a schema, and what is wrong with a schema itself."""

from __future__ import annotations

from typing import TypeAlias

LONGEST_NAME = 60
MOST_PARTS = 10


class SchemaError(ValueError):
    """A schema that can't be used: where in it, and why."""

    def __init__(self, at: str, problem: str) -> None:
        super().__init__(f"{at.strip('/')}: {problem}" if at.strip("/") else problem)


class Problem:
    """A field that does not fit: built from the inside out, so that what fits costs nothing."""

    __slots__ = ("path", "text")

    def __init__(self, text: str) -> None:
        self.path: list[str] = []
        self.text = text

    def inside(self, name: str) -> Problem:
        self.path.append(name)
        return self


Found: TypeAlias = "Problem | None"


def found(text: str) -> Problem:
    return Problem(text)


def join_path(problem: Problem) -> str:
    """`offers.0.price: must be a number, not text`."""
    names = [name[:LONGEST_NAME] for name in reversed(problem.path)][:MOST_PARTS]
    return f"{'.'.join(names)}: {problem.text}" if names else problem.text
