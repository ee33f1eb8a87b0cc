"""A probe takes one item the whole way: one child for each stage that follows, and then it is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.jobs.job import NewJob
    from penstock.pipeline.graph import Node, Stage


class Enough(BaseException):
    """The attempt has given what a probe needs. No Exception: steps that bear with errors let it pass."""


class OneOfEach:
    """What an attempt of a probe has handed on so far."""

    __slots__ = ("_fed", "_is_leaf_of_run", "_wanted")

    def __init__(self, stage: Stage) -> None:
        self._wanted = _stages_after(stage.root)
        self._fed: set[str] = set()
        self._is_leaf_of_run = stage.unit == "run" and not self._wanted

    def admits(self, child: NewJob) -> bool:
        """Whether this is the first child for its stage."""
        is_first = child.stage not in self._fed
        self._fed.add(child.stage)
        return is_first

    def check(self) -> None:
        """An output was walked to its end."""
        if self._wanted and self._fed >= self._wanted:
            raise Enough

    def saved(self) -> None:
        """A run-level step that hands nothing on has shown what it can with its first record."""
        if self._is_leaf_of_run:
            raise Enough


class FewPages:
    """What an attempt of a run that was asked for a few pages has handed on so far."""

    __slots__ = ("_keys", "_pages")

    def __init__(self, stage: Stage, pages: int) -> None:
        self._keys: dict[str, set[str]] = {name: set() for name in _stages_after(stage.root)}
        self._pages = pages

    def admits(self, child: NewJob) -> bool:
        keys = self._keys.setdefault(child.stage, set())
        if len(keys) < self._pages:
            keys.add(child.key)
        return child.key in keys

    def check(self) -> None:
        """An output was walked to its end."""
        if self._keys and all(len(keys) >= self._pages for keys in self._keys.values()):
            raise Enough

    def saved(self) -> None:
        """Records are not counted."""


def _stages_after(node: Node) -> set[str]:
    found = {feed.stage for feed in node.feeds}
    for inner in node.fused:
        found |= _stages_after(inner)
    return found
