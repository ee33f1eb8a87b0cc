"""Variables that penstock.yaml names and the environment does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import ConfigError

HINT = "set it in the environment, or in a file .env beside penstock.yaml"
# They say which project this is and where its data lies: without them nothing can even be looked at.
NEEDED_TO_LOOK = ("project", "store", "snapshots")
# Needed by a command of its own, not by the work.
NEEDED_BY_TRIGGER = ("trigger",)


@dataclass(frozen=True, slots=True)
class Unset:
    """A variable that is not set, and where it is needed: a key at the top of the file, maybe of a source."""

    name: str
    path: str
    where: str
    section: str
    source: str = ""
    near: str = ""

    @property
    def words(self) -> str:
        if ":" in self.name:
            return f"{self.where}{self.path}: ${{{self.name}}} has no secret: {self.near}"
        tail = f"; {self.near}" if self.near else ""
        return f"{self.where}{self.path}: the environment variable {self.name} is not set{tail}"


def refuse_unset(unset: Sequence[Unset]) -> None:
    """Raise about the first of them, if there is any."""
    if unset:
        hint = "" if ":" in unset[0].name else HINT
        raise ConfigError(unset[0].words, hint)


def warnings_about(unset: Sequence[Unset]) -> list[str]:
    """A line for each source and section that can't be used."""
    found: dict[str, list[str]] = {}
    for each in unset:
        found.setdefault(each.source or f"{each.section}:", []).append(each.name)
    return [_warning(owner, list(dict.fromkeys(names))) for owner, names in found.items()]


def _warning(owner: str, names: list[str]) -> str:
    shown = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    verb = "is" if len(names) == 1 else "are"
    if not owner.endswith(":"):
        return f"{shown} {verb} not set: {owner} can't run"
    if owner.removesuffix(":") in NEEDED_BY_TRIGGER:
        return f"{shown} {verb} not set: the trigger server can't run"
    return f"{shown} {verb} not set, which {owner} needs: nothing can run"
