"""What a shell can complete: names of the project, read quickly, without its code and without a write.

Whatever goes wrong, nothing is suggested: whoever presses Tab has asked no question that an error would
answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# More than this nobody reads, and bash asks whether it should be shown at all.
MOST = 50
LONGEST_ABOUT = 60


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A word, and what a shell that has room for it shows beside it."""

    word: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Words for the nouns of one project: the one here, or the one at `place`."""

    place: str | None = None
    environment: str | None = None

    def of(self, noun: str, prefix: str, given: Mapping[str, str]) -> list[Suggestion]:
        """Words that begin like this; `given` are words of the same command that narrow them down."""
        try:
            found = list(self._of(noun, prefix, given))
        except Exception:
            if os.environ.get("PENSTOCK_DEBUG"):
                raise
            return []
        return [each for each in found if each.word.startswith(prefix) and each.word.isprintable()]

    def _of(self, noun: str, prefix: str, given: Mapping[str, str]) -> Iterable[Suggestion]:
        if noun == "SOURCE":
            from penstock.settings.names import source_names

            return map(Suggestion, sorted(source_names(self._path, self.environment)))
        if noun == "STATE":
            from penstock.jobs.job import JobState

            return map(Suggestion, JobState)
        if noun == "KIND":
            from penstock.jobs.failures import KINDS, POISON

            return map(Suggestion, (*KINDS, POISON))
        if noun in ("RUNBOOK", "STEP"):
            return _runbooks(noun, given)
        if noun == "EVENT":
            return _events(prefix)
        return self._in_the_database(noun, prefix, given)

    def _in_the_database(
        self, noun: str, prefix: str, given: Mapping[str, str]
    ) -> Iterable[Suggestion]:
        from penstock.settings.names import store_address
        from penstock.settings.units import normalise_source
        from penstock.store.peek import QUERIES, peek

        query, needed = QUERIES.get(noun, ("", ()))
        if not query or any(name not in given for name in needed):
            return
        source = given.get("source")
        values = {
            "source": normalise_source(source) if source else None,
            "collection": given.get("collection"),
        }
        address, folder = store_address(self._path, self.environment)
        for word, about in peek(address, folder, query, prefix=prefix, limit=MOST, **values):
            yield Suggestion(word, _one_line(about))

    @property
    def _path(self) -> Path | None:
        return Path(self.place) if self.place else None


def _runbooks(noun: str, given: Mapping[str, str]) -> Iterable[Suggestion]:
    """The runbooks; or the steps of the one that is given."""
    from penstock.runbooks.library import RUNBOOKS

    if noun == "RUNBOOK":
        return [Suggestion(each.name, each.title) for each in RUNBOOKS.values()]
    found = RUNBOOKS.get(given.get("name", ""))
    return [] if found is None else [Suggestion(step.name, step.title) for step in found.steps]


def _events(prefix: str) -> Iterable[Suggestion]:
    """Nouns, which stand for all of their kinds; kinds where a noun has begun."""
    from penstock.journal.registry import EVENTS

    nouns = dict.fromkeys(each.kind.partition(".")[0] for each in EVENTS)
    yield from (Suggestion(noun, "all of them") for noun in sorted(nouns))
    if prefix:
        for each in sorted(EVENTS, key=lambda event: event.kind):
            yield Suggestion(each.kind, _one_line(each.__doc__ or ""))


def _one_line(text: str) -> str:
    shown = "".join(each if each.isprintable() else " " for each in text)
    return shown if len(shown) <= LONGEST_ABOUT else f"{shown[: LONGEST_ABOUT - 1]}…"
