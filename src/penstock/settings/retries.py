"""Retry classes as penstock.yaml has them: a project's own, and which of them a source takes."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from msgspec import field

from penstock.settings.declaration import (
    Keys,
    Schema,
    Usual,
    about,
    between,
    decode,
    names_of,
    no_less,
)
from penstock.settings.document import Entry, join
from penstock.settings.kinds import Duration, Ref
from penstock.settings.section import Section, describe, read_choice, read_text

RETRY_NAMES = ("fast", "conservative", "provider-safe")
MOST_TRIES = 1000
Tries = Annotated[int, between(1, MOST_TRIES)]


@dataclass(frozen=True, slots=True)
class RetryChoice:
    """A retry class by its name, and what is to be different from it; None is as the class has it."""

    name: str | None = None
    tries: int | None = None
    base_s: float | None = None
    cap_s: float | None = None
    unknown_tries: int | None = None


class RetryKeys(Keys, frozen=True):
    """What is different from a retry class; what is left out is as in `class`."""

    class_: Annotated[str | None, about("the class it is based on"), Usual("`fast`")] = field(
        default=None, name="class"
    )
    tries: Annotated[Tries | None, about("tries in total"), Usual("the class's")] = None
    base: Annotated[Duration | None, no_less(0.001), about("first wait"), Usual("the class's")] = (
        None
    )
    cap: Annotated[Duration | None, no_less(0.001), about("longest wait"), Usual("the class's")] = (
        None
    )
    unknown_tries: Annotated[
        Tries | None, about("tries after an error of unknown kind"), Usual("the class's")
    ] = None

    def made(self, at: Section) -> RetryChoice:
        if self.base is not None and self.cap is not None and self.base > self.cap:
            raise at.error("base", "must not be longer than cap, the longest wait")
        return RetryChoice(self.class_, self.tries, self.base, self.cap, self.unknown_tries)


RETRY_KEYS = names_of(RetryKeys)


def read_retries(entry: Entry, path: str) -> dict[str, RetryChoice]:
    """The project's own classes; each says what is different from the class that it is made from."""
    if not isinstance(entry.value, dict):
        raise entry.error(path, "must be a mapping of names to retry classes")
    found = {}
    for name, inner in entry.value.items():
        at = join(path, name)
        if name in RETRY_NAMES:
            raise inner.error(at, "is already a class; choose another name")
        if not isinstance(inner.value, dict):
            raise inner.error(at, "must be a mapping such as {tries: 8, base: 1m, cap: 2h}")
        found[name] = read_retry(inner, at)
        refuse_unknown_class(inner, at, RETRY_NAMES)
    return found


def read_retry(entry: Entry, path: str) -> RetryChoice:
    """A source's `retry`: the name of a class, or a mapping that says what is different from one."""
    if isinstance(entry.value, dict):
        found: RetryChoice = decode(RetryKeys, entry, path)
        return found
    if isinstance(entry.value, list):
        problem = (
            f"must be the name of a class or a mapping like {{tries: 8}}, not {describe(entry)}"
        )
        raise entry.error(path, problem)
    return RetryChoice(read_text(entry, path))


def refuse_unknown_class(entry: Entry | None, path: str, known: Collection[str]) -> None:
    """Which classes there are, only the whole project says."""
    if entry is not None and isinstance(entry.value, dict):
        entry, path = entry.value.get("class"), join(path, "class")
    if entry is not None and entry.value is not None:
        read_choice(entry, path, known)


def retry_schema(ref: Ref) -> Schema:
    return {"anyOf": [{"type": "string", "examples": list(RETRY_NAMES)}, ref(RetryKeys)]}
