"""The files of a corpus: a manifest, one file for each payload, and the approved records, a line each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import UsageError
from penstock.http.response import Response

MANIFEST = "penstock-golden.json"
RECORDS = "records.jsonl"
PAGES = "pages"
FORMAT = 1
# Cookies, tokens and the habits of a server are nobody's business in a repository.
KEPT_HEADERS = ("content-language", "content-type", "etag", "last-modified", "link")
ENDINGS = {
    "text/html": ".html", "application/json": ".json", "application/ld+json": ".json",
    "application/xml": ".xml", "text/xml": ".xml", "application/rss+xml": ".xml",
    "application/atom+xml": ".xml", "text/plain": ".txt", "text/csv": ".csv",
    "application/xhtml+xml": ".html",
}  # fmt: skip
# Git must not change the ends of lines of what was fetched.
ATTRIBUTES = "pages/* -text\n"
ATTRIBUTES_FILE = ".gitattributes"
Line = dict[str, Any]


class GoldenPage(msgspec.Struct, frozen=True):
    """An answer that a job got: from which address, and in which file its body is."""

    url: str
    final_url: str
    status: int
    headers: dict[str, str]
    fetched_at: float
    file: str
    sha256: str


class GoldenCase(msgspec.Struct, frozen=True):
    """One job: what its first step was given, and what it fetched."""

    id: str
    stage: str
    key: str
    item: Any
    at: float
    pages: list[GoldenPage]

    @property
    def name(self) -> str:
        """How people know it: by the address of its page."""
        return self.pages[0].url if self.pages else self.key


class Manifest(msgspec.Struct, frozen=True):
    """What a corpus is of."""

    format: int = msgspec.field(name=MANIFEST.removesuffix(".json"))
    source: str
    private: bool
    cases: list[GoldenCase]


@dataclass(slots=True)
class Corpus:
    """A corpus in a folder. `approved` are the lines of each case."""

    folder: Path
    source: str
    is_private: bool = False
    cases: list[GoldenCase] = field(default_factory=list)
    approved: dict[str, list[Line]] = field(default_factory=dict)

    def answers(self, case: GoldenCase) -> dict[str, Response]:
        """What a case fetched, by address; refused where a file is not what was recorded."""
        return {page.url: self._answer(page) for page in case.pages}

    def _answer(self, page: GoldenPage) -> Response:
        path = self.folder / PAGES / Path(page.file).name
        try:
            body = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}", "record the corpus again") from None
        if hashlib.sha256(body).hexdigest() != page.sha256:
            raise UsageError(
                f"{path} is not the page that was recorded",
                f"check it out as it was committed; {ATTRIBUTES_FILE} keeps git from changing its lines",
                code="golden_page_changed",
            )
        headers, at = page.headers, page.fetched_at
        return Response(
            page.final_url, page.url, page.status, headers, body, at, is_from_snapshot=True,
            content_hash=page.sha256,
        )  # fmt: skip

    def add(self, case: GoldenCase, bodies: Mapping[str, bytes], lines: list[Line]) -> None:
        """A case with its payloads, by file name, which are written at once."""
        (self.folder / PAGES).mkdir(parents=True, exist_ok=True)
        for name, body in bodies.items():
            (self.folder / PAGES / name).write_bytes(body)
        self.cases = [*[each for each in self.cases if each.id != case.id], case]
        self.approved[case.id] = lines

    def write(self) -> None:
        """The manifest and the approved records; in an order that keeps differences small."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cases.sort(key=lambda case: (case.stage, case.key))
        manifest = Manifest(FORMAT, self.source, self.is_private, self.cases)
        text = json.dumps(msgspec.to_builtins(manifest), indent=1, ensure_ascii=False)
        (self.folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
        (self.folder / ATTRIBUTES_FILE).write_text(ATTRIBUTES)
        self.write_approved()

    def write_approved(self) -> None:
        lines = [
            text_of({"case": case.id, **line})
            for case in self.cases
            for line in self.approved.get(case.id, [])
        ]
        (self.folder / RECORDS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def remove_files(self) -> None:
        """Remove what the manifest names, and nothing else that somebody put there."""
        for case in self.cases:
            for page in case.pages:
                (self.folder / PAGES / Path(page.file).name).unlink(missing_ok=True)
        for name in (MANIFEST, RECORDS):
            (self.folder / name).unlink(missing_ok=True)


def read_corpus(folder: Path) -> Corpus:
    """The corpus in this folder; what is wrong with its files is said in a line."""
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise UsageError(
            f"there is no golden corpus in {folder}",
            "record one from stored pages first",
            code="no_golden_corpus",
        ) from None
    except (OSError, msgspec.DecodeError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}", "check out the file again") from None
    if manifest.format != FORMAT:
        raise UsageError(
            f"{path} has format {manifest.format}, and this Penstock reads {FORMAT}",
            "record the corpus again, or use the version of Penstock that wrote it",
        )
    approved: dict[str, list[Line]] = {case.id: [] for case in manifest.cases}
    for number, line in enumerate(_lines(folder / RECORDS), 1):
        case = line.pop("case", None)
        if case not in approved:
            raise UsageError(
                f"{folder / RECORDS}:{number}: {case!r:.40} is not a case of {path.name}"
            )
        approved[case].append(line)
    return Corpus(folder, manifest.source, manifest.private, manifest.cases, approved)


def _lines(path: Path) -> Iterable[Line]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", "record the corpus again") from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            yield msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(f"{path}:{number}: {error}") from None


def corpora_in(folder: Path) -> list[Path]:
    """The folders below this one that hold a corpus."""
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))


def folder_name(source: str) -> str:
    """A folder's name for the key of a source."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", source.lower()).strip("-.") or "source"
    if plain == source:
        return plain
    return f"{plain[:60]}-{hashlib.sha256(source.encode()).hexdigest()[:6]}"


def case_id(stage: str, key: str) -> str:
    return hashlib.sha256(f"{stage}\0{key}".encode()).hexdigest()[:10]


def page_of(response: Response) -> GoldenPage:
    """An answer as it is put down."""
    digest = hashlib.sha256(response.body).hexdigest()
    return GoldenPage(
        response.requested_url,
        response.url,
        response.status,
        {name: value for name, value in response.headers.items() if name in KEPT_HEADERS},
        response.fetched_at,
        digest[:20] + ENDINGS.get(response.content_type, ".bin"),
        digest,
    )


def text_of(line: Line) -> str:
    return json.dumps(line, ensure_ascii=False, sort_keys=True)
