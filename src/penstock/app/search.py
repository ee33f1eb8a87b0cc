"""Search: what somebody means by a name, a number, an address or a key. Every look-up has an index."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from penstock.app.privacy import hides
from penstock.app.views.jobs import JobView, RecordKey, job_view
from penstock.app.views.runs import RunView, run_view
from penstock.app.views.search import SearchView
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns

# Of each kind, so many are found; of so many collections, keys are looked up.
FOUND, COLLECTIONS = 20, 50
LONGEST, LARGEST_ID = 2_000, 2**63 - 1


def search(project: Nouns, text: str) -> SearchView:
    """What is called like this."""
    wanted = text.strip().replace("\x00", "")
    if len(wanted) > LONGEST:
        raise UsageError("this is too long to search for", code="too_long")
    return SearchView(
        text=wanted,
        sources=_sources(project, wanted),
        runs=_runs(project, wanted),
        jobs=_jobs(project, wanted),
        pages=[*project.pages.list(wanted, limit=FOUND)] if wanted else [],
        records=_records(project, wanted),
    )


def _sources(project: Nouns, text: str) -> list[str]:
    lowered = text.lower()
    found = sorted(project.connection.sources.ids())
    return [*islice((key for key in found if lowered and lowered in key.lower()), FOUND)]


def _number(text: str) -> int | None:
    """`12`, `run 12`, `job 12`."""
    digits = text.lower().removeprefix("run").removeprefix("job").strip().removeprefix("#")
    if not digits.isascii() or not digits.isdigit():
        return None
    return int(digits) if 0 < int(digits) <= LARGEST_ID else None


def _runs(project: Nouns, text: str) -> list[RunView]:
    number, store = _number(text), project.connection
    if number is None or text.lower().startswith("job"):
        return []
    row = store.runs.get(number)
    return [] if row is None else [run_view(row, store.now())]


def _jobs(project: Nouns, text: str) -> list[JobView]:
    number = _number(text)
    if number is None or text.lower().startswith("run"):
        return []
    row = project.connection.jobs.get(number)
    return [] if row is None else [job_view(row)]


def _records(project: Nouns, text: str) -> list[RecordKey]:
    """The record with this key, and those whose keys begin with it."""
    records = project.connection.records
    private = project.settings.private_sources if hides(project) else frozenset()
    found: list[RecordKey] = []
    for collection, _ in records.collections()[:COLLECTIONS]:
        left = FOUND - len(found)
        if not text or left <= 0:
            break
        rows = [
            *records.versions(collection, text)[-1:],
            *records.of(collection, after_key=text, limit=left),
        ]
        open_rows = [row for row in rows if row.source not in private]
        begun = [row.key for row in open_rows if row.key.startswith(text)]
        found += [RecordKey(collection=collection, key=key) for key in begun[:left]]
    return found
