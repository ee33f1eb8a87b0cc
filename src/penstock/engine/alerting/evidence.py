"""Evidence: what an operator would look up first, gathered when an alert opens.

Events, errors and addresses are copied into it; pages are referred to by their snapshots, which the alert
pins. So it can be read after retention has dropped the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import nsmallest
from itertools import islice
from typing import Any

import msgspec

from penstock.alerts.history import Finding
from penstock.alerts.rules import RULES
from penstock.engine.alerting.advice import runbook_command, safe_commands
from penstock.engine.alerting.sites import NEW, REFERENCES, SITE_SCHEMAS, first_at
from penstock.errors import PenstockError
from penstock.http.response import Response
from penstock.jobs.job import JobState
from penstock.store.entries import EntryFilter, EntryRow
from penstock.store.jobs import JobFilter
from penstock.store.reject_rows import RejectFilter, RejectRow
from penstock.store.rows import EventRow, JobRow, RecordRow, SnapshotRow
from penstock.store.store import Store

MOST_EXAMPLES = 3
OK = 200
# Among so many candidates examples are looked for, so that they are of different causes.
CANDIDATES = 50
LONGEST_ERROR = 500
# For so long a page is waited for.
READ_S = 5.0
FAILED_JOBS = ("extraction-failures", "failures-in-an-hour", "breaker-open", "stale-source")
ABOUT_SITES = ("mapper-confidence", "image-pollution")
REJECTED = ("rejection-rise", "quality-drop")
ENDS = ("completed", "partial", "failed", "cancelled")
ReadPage = Callable[[SnapshotRow], Response]


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One failing example. `what` is a job, a reject, or a page that yielded nothing."""

    what: str
    key: str
    error: str = ""
    run: int | None = None
    job: int | None = None
    url: str = ""
    snapshot: int | None = None
    at: float | None = None

    @property
    def words(self) -> str:
        where = self.url or self.key
        said = f"{where}: {self.error}" if self.error else where
        ids = [f"{name} {id_}" for name, id_ in (("job", self.job), ("run", self.run)) if id_]
        return f"{said} ({' of '.join(ids)})" if ids else said


class FirstEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of the journal that shows the change, copied."""

    event: int
    at: float
    kind: str
    detail: str
    run: int | None = None
    data: dict[str, Any] = {}


class PageStructure(msgspec.Struct, frozen=True, kw_only=True):
    """A failing page beside the last good one, which may be from another address of the same source.

    `kept` is the share of what the good page has that the failing one has, too. `is_other_page`: nearly
    nothing, as with an error page, a login or a block.
    """

    url: str
    failing_snapshot: int
    good_snapshot: int
    good_at: float
    vanished: list[str] = []
    appeared: list[str] = []
    kept: float = 1.0
    is_other_page: bool = False
    good_url: str = ""
    title: str = ""
    good_title: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that was gathered. `missing` says what could not be, and why."""

    examples: list[Example] = []
    structure: PageStructure | None = None
    first_event: FirstEvent | None = None
    runbook: str = ""
    runbook_command: str = ""
    safe: list[str] = []
    missing: list[str] = []

    @property
    def pins(self) -> tuple[int, ...]:
        """The snapshots that must stay."""
        found = [each.snapshot for each in self.examples if each.snapshot is not None]
        if self.structure is not None:
            found += [self.structure.failing_snapshot, self.structure.good_snapshot]
        return tuple(dict.fromkeys(found))


class EvidenceGatherer:
    """Reads what speaks for a finding. It changes nothing, and a page that can't be read is no error."""

    def __init__(self, store: Store, read_page: ReadPage) -> None:
        self._store = store
        self._read_page = read_page
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="evidence")

    def close(self) -> None:
        self._reader.shutdown(wait=False, cancel_futures=True)

    def gather(self, finding: Finding, source_id: int) -> Evidence:
        rule = RULES[finding.rule]
        missing: list[str] = []
        examples: list[Example] = []
        first, structure = None, None
        if finding.source:
            examples = self._tried("examples", missing, lambda: self._examples(finding)) or []
            first = self._tried("first event", missing, lambda: self._first_event(finding))
            structure = self._tried(
                "structure", missing, lambda: self._structure(finding, source_id, examples)
            )
        return Evidence(
            examples=examples,
            structure=structure,
            first_event=first,
            runbook=rule.runbook,
            runbook_command=runbook_command(rule.runbook, finding.source),
            safe=safe_commands(finding.rule, finding.source),
            missing=missing,
        )

    def _tried(self, what: str, missing: list[str], look: Callable[[], Any]) -> Any:
        """An alert must open although a page can't be read: then its evidence says so."""
        try:
            return look()
        except (PenstockError, OSError, ValueError) as error:
            missing.append(f"{what}: {error}"[:LONGEST_ERROR])
            return None

    # Examples.

    def _examples(self, finding: Finding) -> list[Example]:
        if finding.rule in FAILED_JOBS:
            return self._failed_jobs(finding)
        if finding.rule in REJECTED:
            found = self._rejected(finding)
            return found or (self._pages_of_run(finding.run) if finding.run is not None else [])
        if finding.rule in ABOUT_SITES:
            return list(islice(self._of_sites(finding), MOST_EXAMPLES))
        if finding.rule == "references-waiting":
            return list(self._references(finding))
        if finding.run is not None:
            return self._pages_of_run(finding.run) or self._failed_jobs(finding)
        return []

    def _failed_jobs(self, finding: Finding) -> list[Example]:
        """The newest of different causes."""
        wanted = EntryFilter(source=finding.source, since=finding.since)
        rows = sorted(self._store.quarantine.each(wanted, CANDIDATES), key=lambda row: -row.since)
        return [_of_entry(row) for row in _different(rows)]

    def _rejected(self, finding: Finding) -> list[Example]:
        ids = self._store.sources.ensure([finding.source])
        wanted = RejectFilter(source_id=ids[finding.source], since=finding.since)
        rows = self._store.rejects.newest(wanted, CANDIDATES)
        first = {row.code: row for row in reversed(rows)}
        chosen = [*first.values(), *(row for row in rows if row not in first.values())]
        return [self._of_reject(row) for row in chosen[:MOST_EXAMPLES]]

    def _of_sites(self, finding: Finding) -> Iterator[Example]:
        """Selectors with pages of the sites that this source has learned."""
        for row in self._store.records.each(SITE_SCHEMAS):
            data = _fields(row)
            if (data.get("learned_by") or row.source) == finding.source:
                about: dict[str, Any] = {"run": row.run, "at": row.updated_at}
                found = _notes_of(data) if finding.rule == "image-pollution" else _unsure_of(data)
                for key, error, url in found:
                    error = error[:LONGEST_ERROR]
                    yield Example(what="site", key=key, error=error, url=url, **about)

    def _references(self, finding: Finding) -> Iterator[Example]:
        """Those that wait for too long, the oldest first."""
        ids = self._store.sources.ensure([finding.source])
        rows = self._store.records.each(REFERENCES, source_id=ids[finding.source])
        new = (row for row in rows if _fields(row).get("status", NEW) == NEW)
        many = min(MOST_EXAMPLES, int(finding.numbers[0].value))
        for row in nsmallest(many, new, key=partial(first_at, self._store)):
            data = _fields(row)
            told = f"{data.get('supplier_name') or ''} of {data.get('source_domain') or ''}"
            url = str(data.get("source_url") or "")
            about: dict[str, Any] = {"run": row.run, "at": row.updated_at}
            yield Example(what="reference", key=row.key, error=told, url=url, **about)

    def _of_reject(self, row: RejectRow) -> Example:
        page = next(iter(self._store.snapshots.of_job(row.job_id, 1)), None)
        return Example(
            what="reject",
            key=row.key,
            error=f"{row.code}: {row.reason}"[:LONGEST_ERROR],
            run=row.run_id,
            job=row.job_id,
            url="" if page is None else page.url,
            snapshot=row.snapshot_id or (None if page is None else page.id),
            at=row.at,
        )

    def _pages_of_run(self, run_id: int) -> list[Example]:
        """Pages that were fetched and gave nothing, or too little."""
        found = (
            _of_page(job, page)
            for job in self._page_jobs(run_id)
            for page in self._store.snapshots.of_job(job.id, 1)
        )
        return list(islice(found, MOST_EXAMPLES))

    def _page_jobs(self, run_id: int) -> Iterator[JobRow]:
        """Jobs of pages first; a pipeline without such has its run's own job."""
        ended = (JobState.SUCCEEDED, JobState.SKIPPED, JobState.QUARANTINED)
        rows = self._store.jobs.find(JobFilter(run_id=run_id, states=ended, limit=CANDIDATES))
        yield from sorted(rows, key=lambda row: (row.unit != "page", row.id))

    # The change.

    def _first_event(self, finding: Finding) -> FirstEvent | None:
        """The end of the first run that shows it, or the first failure since then."""
        if finding.run is None:
            return None
        rows = self._store.journal.events(run_id=finding.run, kind="job.quarantined", limit=1)
        if finding.rule not in FAILED_JOBS or not rows:
            ended = self._store.journal.events(run_id=finding.run, kind="run", limit=CANDIDATES)
            rows = [row for row in ended if row.kind.partition(".")[2] in ENDS]
        return _copied(rows[0]) if rows else None

    def _structure(
        self, finding: Finding, source_id: int, examples: Sequence[Example]
    ) -> PageStructure | None:
        """The first failing page that can be compared."""
        pages = [each for each in examples if each.snapshot is not None and each.url]
        for same_address in (True, False):
            for example in pages:
                bad = self._page(example.url, example.snapshot)
                good = (
                    self._good_at(example.url, finding.since)
                    if same_address
                    else self._good_of_source(source_id, finding.since)
                )
                if bad is not None and good is not None and bad.id != good.id:
                    return self._compared(good, bad)
        return None

    def _page(self, url: str, snapshot: int | None) -> SnapshotRow | None:
        found = self._store.snapshots.at(url, CANDIDATES)
        return next((page for page in found if page.id == snapshot), None)

    def _good_at(self, url: str, since: float) -> SnapshotRow | None:
        """What came from this address last before the change."""
        found = self._store.snapshots.at(url, CANDIDATES)
        return next((p for p in found if p.fetched_at < since and p.status == OK), None)

    def _good_of_source(self, source_id: int, since: float) -> SnapshotRow | None:
        """A page of the last run before the change that saved something."""
        for run in reversed(self._store.alert_facts.runs(source_id, 0.0, CANDIDATES)):
            if run.finished_at < since and run.inserted + run.updated + run.unchanged:
                for job in self._page_jobs(run.id):
                    for page in self._store.snapshots.of_job(job.id, 1):
                        if page.status == OK:
                            return page
                return None
        return None

    def _compared(self, good: SnapshotRow, bad: SnapshotRow) -> PageStructure:
        # Here and not above: it parses HTML, and most leaders never meet an alert.
        from penstock.alerts.structure import difference, structure_of

        before, after = structure_of(self._read(good)), structure_of(self._read(bad))
        changed = difference(before, after)
        return PageStructure(
            url=bad.url,
            good_url=good.url,
            failing_snapshot=bad.id,
            good_snapshot=good.id,
            good_at=good.fetched_at,
            vanished=changed.vanished,
            appeared=changed.appeared,
            kept=changed.kept,
            is_other_page=changed.is_other_page,
            title=after.title,
            good_title=before.title,
        )

    def _read(self, page: SnapshotRow) -> str:
        """In a thread beside: storage that hangs must not keep the leader from its other chores."""
        reading = self._reader.submit(lambda: self._read_page(page).text)
        try:
            return reading.result(READ_S)
        except TimeoutError:
            raise ValueError(f"snapshot {page.id} was not read within {READ_S:g} s") from None


def _notes_of(data: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each note that is not solved: the selector, what is wrong, and the first of its pages."""
    notes = data.get("pollution_notes")
    for note in reversed(notes if isinstance(notes, list) else []):
        if isinstance(note, str):
            yield note, "", ""  # as an SQL client writes it
        elif isinstance(note, dict) and note.get("status") != "solved":
            pages = note.get("pages")
            url = str(pages[0]) if isinstance(pages, list) and pages else ""
            yield str(note.get("selector", "")), str(note.get("reason", "")), url


def _unsure_of(data: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The fields of the schema that the mapper is least sure of, and their selectors."""
    found: list[tuple[float, str, str]] = []
    for kind, page_type in _mapping(_mapping(data.get("schema_data")).get("page_types")).items():
        for name, about in _mapping(_mapping(page_type).get("fields")).items():
            confidence = _mapping(about).get("confidence")
            if isinstance(confidence, (int, float)):
                selectors = ", ".join(map(str, about.get("selectors") or ()))
                found.append((float(confidence), f"{kind}.{name}", selectors))
    for confidence, name, selectors in sorted(found):
        yield name, f"confidence {confidence:.2f} by {selectors}", ""
    if not found:
        yield str(data.get("domain", "")), "no field was found", ""


def _mapping(value: Any) -> dict[str, Any]:
    """What pipelines save may be anything."""
    return value if isinstance(value, dict) else {}


def _different(rows: list[EntryRow]) -> list[EntryRow]:
    """One of each cause, then others."""
    first = {row.cause: row for row in reversed(rows)}
    chosen = [*first.values(), *(row for row in rows if row not in first.values())]
    return chosen[:MOST_EXAMPLES]


def _fields(row: RecordRow) -> dict[str, Any]:
    return row.data if isinstance(row.data, dict) else {}


def _of_entry(row: EntryRow) -> Example:
    page = row.snapshot
    return Example(
        what="job",
        key=row.key,
        error=row.error[:LONGEST_ERROR],
        run=row.run_id,
        job=row.id,
        url="" if page is None else page.url,
        snapshot=None if page is None else page.id,
        at=row.since,
    )


def _of_page(job: JobRow, page: SnapshotRow) -> Example:
    return Example(
        what="page",
        key=job.key,
        error=(job.error or "")[:LONGEST_ERROR],
        run=job.run_id,
        job=job.id,
        url=page.url,
        snapshot=page.id,
        at=page.fetched_at,
    )


def _copied(row: EventRow) -> FirstEvent:
    return FirstEvent(
        event=row.id, at=row.at, kind=row.kind, detail=row.detail, run=row.run_id, data=row.data
    )
