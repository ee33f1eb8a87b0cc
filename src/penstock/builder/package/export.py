"""The export: all files of a package, from companies to a folder in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.builder.company import FIELDS, Company
from penstock.builder.package.folder import Folder, new_package
from penstock.builder.package.report import dictionary, report
from penstock.builder.package.tables import WRITERS, known_formats
from penstock.builder.quality import Kpi, QualitySummary, kpis, summarise
from penstock.version import __version__

MANIFEST_VERSION = 1
FORMATS = ("csv", "jsonl", "parquet", "xlsx")
NAME = "companies"
MANIFEST, DICTIONARY, REPORT = "manifest.json", "data_dictionary.md", "quality_report.html"


class PackedFile(msgspec.Struct, frozen=True):
    """One file of a package."""

    name: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a package. `path` is where it lies, and no part of the file."""

    manifest: int
    title: str
    companies: int
    columns: list[dict[str, str]]
    files: list[PackedFile]
    quality: QualitySummary
    kpis: list[Kpi]
    about: dict[str, Any]
    penstock: str
    path: str = ""


def export(
    companies: Sequence[Company],
    outdir: Path,
    *,
    formats: Sequence[str] = FORMATS,
    title: str = "Companies",
    about: Mapping[str, Any] | None = None,
    rows: int = 0,
    targets: Mapping[str, float] | None = None,
    lines_per_s: float | None = None,
) -> Manifest:
    """Write the package to `outdir/package`, and say what is in it.

    Companies are sorted by their ids: equal ones give equal files, whatever their order. A speed changes
    from run to run, so it is in the package only if the caller gives it.
    """
    wanted = known_formats(formats)
    ordered = sorted(
        companies,
        key=lambda company: (str(company.get("id") or ""), str(company.get("name") or "")),
    )
    summary = summarise(ordered, rows)
    figures = kpis(summary, targets or {}, lines_per_s)
    with new_package(outdir) as folder:
        for name in wanted:
            with folder.adding(f"{NAME}.{name}") as file:
                WRITERS[name](ordered, file)
        said = dict(about or {})
        _add(folder, DICTIONARY, dictionary(title, summary))
        _add(folder, REPORT, report(title, summary, figures, said))
        manifest = Manifest(
            manifest=MANIFEST_VERSION,
            title=title,
            companies=len(ordered),
            columns=[
                {"name": each.name, "type": each.kind, "meaning": each.meaning} for each in FIELDS
            ],
            files=[
                PackedFile(name, folder.sizes[name], folder.sums[name])
                for name in sorted(folder.sums)
            ],
            quality=summary,
            kpis=figures,
            about=said,
            penstock=__version__,
        )
        _add(folder, MANIFEST, _as_json(manifest))
        return msgspec.structs.replace(manifest, path=str(folder.publish()))


def _add(folder: Folder, name: str, data: bytes) -> None:
    with folder.adding(name) as file:
        file.write(data)


def _as_json(manifest: Manifest) -> bytes:
    said = msgspec.to_builtins(manifest)
    del said["path"]
    return msgspec.json.format(msgspec.json.encode(said), indent=2) + b"\n"
