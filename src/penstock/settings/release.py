"""`release:` and `promotion:` what an environment runs, and how it gets there."""

import re
from pathlib import PurePosixPath
from typing import Annotated

import msgspec

from penstock.settings.declaration import Keys, Reads, Usual, about, between, decode
from penstock.settings.document import Entry, join
from penstock.settings.kinds import one_or_many
from penstock.settings.section import read_text

# What a project is in that has no overlay over it.
LOCAL = "local"
# Who works here serves others: environments of this name are guarded unless penstock.yaml says otherwise.
PRODUCTION = "production"
MOST_APPROVALS = 10
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _read_include(entry: Entry, path: str) -> tuple[str, ...]:
    """Patterns of files below the project's folder, and never of what is beside or above it."""
    entries = entry.value if isinstance(entry.value, list) else [entry]
    return tuple(_pattern(inner, f"{path}[{at}]") for at, inner in enumerate(entries))


def _pattern(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    pattern = PurePosixPath(text)
    if pattern.is_absolute() or ".." in pattern.parts or not pattern.parts:
        raise entry.error(path, "must be files below this folder, such as prompts/*.txt")
    return text


class ReleaseSettings(Keys, frozen=True):
    """What an environment runs."""

    is_required: Annotated[
        bool | None,
        about(
            "workers that run something else than the environment's release refuse to work, and "
            "destructive commands need `--confirm` with the environment's name; see "
            "[releases.md](releases.md)"
        ),
        Usual("`true` in the environment `production`, once it has a release"),
    ] = msgspec.field(default=None, name="required")
    include: Annotated[
        tuple[str, ...],
        Reads(_read_include, lambda _: one_or_many(least=0)),
        about(
            "files that belong to a release beside the code that is imported: `[prompts/*.txt]`, or "
            "all Python files: `[**/*.py]`"
        ),
        Usual("none"),
    ] = ()


class PromotionSettings(Keys, frozen=True):
    """What a release needs before it may come into an environment."""

    approvals: Annotated[
        int,
        between(0, MOST_APPROVALS),
        about("people that must approve a release for this environment; each counts once"),
    ] = 0
    after: Annotated[
        str | None,
        about("the only environment that releases may come from: `staging`"),
        Usual("any"),
    ] = None


def read_promotion(entry: Entry, path: str) -> dict[str, PromotionSettings]:
    """What each environment needs, by its name."""
    if not isinstance(entry.value, dict):
        raise entry.error(path, "must be a mapping of environments to what they need")
    found: dict[str, PromotionSettings] = {}
    for name, inner in entry.value.items():
        at = join(path, name)
        if not NAME.fullmatch(name):
            raise inner.error(at, "can't be the name of an environment")
        made = decode(PromotionSettings, inner, at)
        if made.after == name:
            raise inner.error(join(at, "after"), "is the environment itself")
        found[name] = made
    return found
