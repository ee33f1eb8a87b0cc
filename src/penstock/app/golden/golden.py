"""Record a corpus, check today's code against one, and approve what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.golden.corpus import (
    MANIFEST,
    Corpus,
    GoldenCase,
    Line,
    case_id,
    corpora_in,
    folder_name,
    page_of,
    read_corpus,
)
from penstock.app.golden.offline import blank_project, no_network
from penstock.app.golden.sample import at_addresses, pages_of, sampled
from penstock.app.noun import Noun
from penstock.app.privacy import steps_of
from penstock.app.views.golden import (
    GoldenCaseView,
    GoldenCheckedView,
    GoldenCorpusView,
    GoldenLeftOutView,
    GoldenRecordedView,
    GoldenShiftView,
)
from penstock.app.views.replays import change_view
from penstock.errors import PenstockError, Refused, UsageError
from penstock.jobs.record_changes import RecordChange, change_by_save, changed_fields
from penstock.settings.secrets import redact

if TYPE_CHECKING:
    from penstock.app.project import Project
    from penstock.engine.dry_run import Tried
    from penstock.http.response import Response
    from penstock.settings import Settings, SourceSettings
    from penstock.store.rows import JobRow

DIRECTORY = "golden"
USUAL_PAGES, MOST_PAGES = 20, 1000
RECORD = "collection"
_encode = msgspec.json.Encoder(order="deterministic").encode


class Golden(Noun):
    """Golden corpora: stored pages with the records that were approved for them."""

    def record(
        self,
        source: str,
        *,
        pages: int = USUAL_PAGES,
        seed: int = 1,
        run: int | None = None,
        urls: Sequence[str] = (),
        folder: str | Path | None = None,
        add: bool = False,
        replace: bool = False,
        include_private: bool = False,
    ) -> GoldenRecordedView:
        """Put stored pages of a source into files, with the records that today's code makes of them.

        Pages of every kind are sampled by `seed`, from the newest jobs or from one `run`; or those at `urls`
        are taken. `add` adds them to a corpus that is there, `replace` makes a new one. A page that today's
        code fails on, or that holds a secret of the project, is left out and named. Look at the records
        before you commit them: from then on they are what is right.
        """
        if not 1 <= pages <= MOST_PAGES:
            raise UsageError(f"pages must be from 1 to {MOST_PAGES}")
        found = self._project.source(source)
        if found.private and not (include_private or self._project.includes_private):
            raise Refused(
                f"{found.key} is a private source, and a corpus is a copy of its content",
                "--include-private records it; keep the repository private",
                code="golden_private",
            )
        corpus = self._begun(found, Path(folder) if folder else self._directory(), add, replace)
        project = self._project
        jobs = (
            at_addresses(project, found.key, urls)
            if urls
            else sampled(project, found.key, pages, seed, run)
        )
        return _record(project, found, corpus, jobs, seed)

    def check(
        self,
        source: str | None = None,
        *,
        folder: str | Path | None = None,
        update: bool = False,
        include_private: bool = False,
    ) -> Sequence[GoldenCheckedView]:
        """Hold today's code against the corpus of a source, or against all there are.

        Neither the network nor the project's store is asked. `update` approves what is different; a page
        that failed stays as it was approved.
        """
        directory = Path(folder) if folder else self._directory()
        if source is None:
            places = corpora_in(directory)
            if not places:
                read_corpus(directory)  # says that there is none, and what makes one
        else:
            places = [directory / folder_name(self._project.source(source).key)]
        return [checked_corpus(self._project.settings, place, update) for place in places]

    def list(self, *, folder: str | Path | None = None) -> Sequence[GoldenCorpusView]:
        """The corpora that are there."""
        found = [
            read_corpus(place)
            for place in corpora_in(Path(folder) if folder else self._directory())
        ]
        return [
            GoldenCorpusView(
                source=corpus.source,
                folder=str(corpus.folder),
                cases=len(corpus.cases),
                records=sum(_records(lines) for lines in corpus.approved.values()),
                private=corpus.is_private,
            )
            for corpus in found
        ]

    def _directory(self) -> Path:
        return self._project.settings.root / DIRECTORY

    def _begun(self, source: SourceSettings, directory: Path, add: bool, replace: bool) -> Corpus:
        folder = directory / folder_name(source.key)
        new = Corpus(folder, source.key, source.private)
        if not (folder / MANIFEST).exists():
            return new
        if add:
            return read_corpus(folder)
        if not replace:
            raise Refused(
                f"{folder} holds a corpus already",
                "add pages to it, replace it, or approve what new code makes of its pages",
                code="golden_exists",
            )
        read_corpus(folder).remove_files()
        return new


def _record(
    project: Any, source: SourceSettings, corpus: Corpus, jobs: Sequence[JobRow], seed: int
) -> GoldenRecordedView:
    left_out: list[GoldenLeftOutView] = []
    added = 0
    known = {case.id for case in corpus.cases}
    with blank_project(project.settings) as blank:
        for job in jobs:
            try:
                case, bodies, lines = _recorded(project, blank, source, job)
            except _LeftOut as reason:
                left_out.append(GoldenLeftOutView(url=job.key, reason=str(reason)))
                continue
            added += case.id not in known
            corpus.add(case, bodies, lines)
    if corpus.cases:
        corpus.write()
    return GoldenRecordedView(
        source=source.key,
        folder=str(corpus.folder),
        cases=len(corpus.cases),
        added=added,
        records=sum(_records(lines) for lines in corpus.approved.values()),
        seed=seed,
        left_out=left_out,
    )


class _LeftOut(Exception):
    """Why a page does not go into a corpus."""


def _recorded(
    project: Any, blank: Project, source: SourceSettings, job: JobRow
) -> tuple[GoldenCase, dict[str, bytes], list[Line]]:
    answers = _answers(project, job)
    item = project.connection.jobs.detail(job.id).item
    if item is None:
        raise _LeftOut("its item is no longer kept")
    described = [page_of(answer) for answer in answers.values()]
    at = described[0].fetched_at
    case = GoldenCase(
        case_id(job.stage, job.key), job.stage, job.key, msgspec.json.decode(item), at, described
    )
    lines, problems, _ = performed(blank, source, case, answers)
    if problems:
        raise _LeftOut(f"today's code fails on it: {problems[0]}")
    bodies = {page.file: answers[page.url].body for page in described}
    _refuse_secrets(project.settings, case, bodies, lines)
    return case, bodies, lines


def _answers(project: Any, job: JobRow) -> dict[str, Response]:
    pages = pages_of(project, job)
    if not pages:
        raise _LeftOut("nothing was stored for it")
    try:
        return {page.url: project.read_page(page) for page in pages}
    except PenstockError as error:
        raise _LeftOut(f"its page is no longer kept: {error.message}") from None


def _refuse_secrets(
    settings: Settings, case: GoldenCase, bodies: dict[str, bytes], lines: list[Line]
) -> None:
    secrets = settings.secrets
    if not secrets:
        return
    texts = [
        _encode(msgspec.to_builtins(case)).decode(),
        _encode(lines).decode(),
        *(body.decode("utf-8", "replace") for body in bodies.values()),
    ]
    if any(redact(text, secrets) != text for text in texts):
        raise _LeftOut("it holds a secret of this project")


def performed(
    project: Project, source: SourceSettings, case: GoldenCase, answers: dict[str, Response]
) -> tuple[list[Line], list[str], str]:
    """What today's code makes of a case: lines as they are approved, what is wrong, and a traceback of it."""
    from penstock.engine.dry_run import StoredJob, perform_stored

    stored = StoredJob(case.stage, case.key, _encode(case.item), case.at, answers)
    with no_network(), steps_of(project, source.key):
        try:
            tried, missing = perform_stored(project, source, stored)
        except Refused as error:
            hint = f" ({error.hint})" if error.hint else ""
            return [], [f"{error.message}{hint}"], ""
    problems = [f"it asks for {url}, which is not in the corpus" for url in dict.fromkeys(missing)]
    failed = [job for job in tried.failed if not missing or "not in the corpus" not in job.reason]
    problems += [f"{job.stage} failed: {job.reason}" for job in failed]
    return _lines(tried), problems, failed[0].traceback if failed else ""


def _lines(tried: Tried) -> list[Line]:
    records: list[Line] = [
        {RECORD: name, "key": key, "data": data, **({} if score is None else {"score": score})}
        for name, key, data, score in tried.contents
    ]
    others: list[Line] = [
        {"what": job.state, "key": job.key, "reason": job.reason}
        for job in tried.jobs
        if job.state in ("skipped", "rejected")
    ]
    followed = [
        {"what": "enqueues", "key": key, "reason": stage}
        for stage, keys in tried.enqueued.items()
        for key in keys
    ]
    return [
        *sorted(records, key=lambda line: (line[RECORD], line["key"])),
        *sorted([*others, *followed], key=lambda line: (line["what"], line["key"])),
    ]


def checked_corpus(
    settings: Settings,
    folder: Path,
    update: bool = False,
    on_case: Callable[[GoldenCaseView], None] = lambda _: None,
) -> GoldenCheckedView:
    """Hold today's code against the corpus in this folder."""
    with opened_corpus(settings, folder) as (corpus, check):
        views = []
        for case in corpus.cases:
            view, lines = check(case)
            views.append(view)
            on_case(view)
            if update and view.state == "differs":
                corpus.approved[case.id] = lines
        states = [view.state for view in views]
        if update and "differs" in states:
            corpus.write_approved()
    return GoldenCheckedView(
        source=corpus.source,
        folder=str(folder),
        cases=len(views),
        same=states.count("same"),
        differs=states.count("differs"),
        failed=states.count("failed"),
        updated=update and "differs" in states,
        details=[view for view in views if view.state != "same"],
    )


Check = Callable[[GoldenCase], tuple[GoldenCaseView, list[Line]]]


@contextmanager
def opened_corpus(settings: Settings, folder: Path) -> Iterator[tuple[Corpus, Check]]:
    """A corpus, and what checks one of its cases with today's code."""
    corpus = read_corpus(folder)
    with blank_project(settings) as project:
        source = project.source(corpus.source)

        def check(case: GoldenCase) -> tuple[GoldenCaseView, list[Line]]:
            lines, problems, traceback = performed(project, source, case, corpus.answers(case))
            return _case_view(case, corpus.approved[case.id], lines, problems, traceback), lines

        yield corpus, check


def _case_view(
    case: GoldenCase, approved: list[Line], now: list[Line], problems: list[str], traceback: str
) -> GoldenCaseView:
    changes = [] if problems else list(_changes(approved, now))
    shifts = [] if problems else list(_shifts(approved, now))
    return GoldenCaseView(
        case=case.id,
        url=case.name,
        state="failed" if problems else "differs" if changes or shifts else "same",
        changes=[change_view(change) for change in changes],
        shifts=shifts,
        problems=problems,
        traceback=traceback,
    )


def _changes(approved: list[Line], now: list[Line]) -> Iterator[RecordChange]:
    before, after = _contents(approved), _contents(now)
    for where in sorted(before.keys() | after.keys()):
        old, new = before.get(where), after.get(where)
        if new is None and old is not None:
            fields = changed_fields(old[0], None)
            yield RecordChange(*where, "removed", "", old[1], None, fields)
        elif new is not None and new != old:
            yield change_by_save(where, old, *new)


def _contents(lines: list[Line]) -> dict[tuple[str, str], tuple[str, float | None]]:
    return {
        (line[RECORD], line["key"]): (_encode(line["data"]).decode(), line.get("score"))
        for line in lines
        if RECORD in line
    }


def _shifts(approved: list[Line], now: list[Line]) -> Iterator[GoldenShiftView]:
    before, after = _others(approved), _others(now)
    for change, found in (("removed", before - after), ("added", after - before)):
        for what, key, reason in sorted(found):
            yield GoldenShiftView(change=change, what=what, key=key, reason=reason)


def _others(lines: list[Line]) -> set[tuple[str, str, str]]:
    return {(line["what"], line["key"], line.get("reason", "")) for line in lines if "what" in line}


def _records(lines: list[Line]) -> int:
    return sum(RECORD in line for line in lines)
