"""Quality and packages: documented scores, safe files, a folder that is whole or not there."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import openpyxl
import pytest
from pyarrow import parquet

from penstock.builder.city.world import World
from penstock.builder.company import FIELD_NAMES
from penstock.builder.package import export
from penstock.builder.package.folder import new_package
from penstock.builder.quality import DEFAULT_TARGETS, WEIGHTS, check, kpis, score, summarise
from penstock.errors import AlreadyRunning, Refused, UsageError

WHOLE: dict[str, Any] = {
    "id": "1",
    "name": "Acme Tools LLC",
    "street": "12 Main St",
    "city": "Springfield",
    "postcode": "62704",
    "country": "US",
    "lat": 39.8,
    "lon": -89.6,
    "phone": "+12175550101",
    "email": "info@acmetools.com",
    "website": "http://acmetools.com/",
    "domain": "acmetools.com",
    "category": "tools",
    "sources": ["dump:a", "api:b"],
}
HOSTILE = {
    **WHOLE,
    "id": "2",
    "name": '=cmd|"/c calc"!A1',
    "street": "<script>alert(1)</script>",
    "city": "a\tb;=1+1",
}


def companies(seed: int = 4, size: int = 30) -> list[dict[str, Any]]:
    return [{**company, "id": f"c{at:03d}"} for at, company in enumerate(World(seed, size).truth)]


def test_a_score_is_the_points_of_what_is_there_and_valid() -> None:
    assert sum(WEIGHTS.values()) == 100
    assert check(WHOLE) == []
    assert score(WHOLE) == 100
    bad = {
        **WHOLE,
        "postcode": "ABC",
        "email": "noreply@acmetools.com",
        "phone": None,
        "checks": {"dns": {"acmetools.com": {"exists": False}}},
    }
    assert check(bad) == [
        "postcode_invalid",
        "phone_missing",
        "email_implausible",
        "domain_unresolved",
    ]
    assert score(bad) == 100 - 15 - 0.75 * (7 + 15 + 10)
    assert score({}) == 0


def test_targets_are_met_or_not_and_what_nobody_measured_is_not_met() -> None:
    twice = [
        WHOLE,
        {**WHOLE, "id": "9", "name": "ACME TOOLS"},
        {"name": "Beta Bakery", "website": "nonsense"},
    ]
    summary = summarise(twice, rows=7)
    assert (summary.duplicates, summary.dup_pct, summary.url_valid_pct) == (1, 33.33, 66.67)
    assert (summary.email_plausible_pct, summary.domain_resolved_pct) == (100, 100)
    assert sum(summary.scores) == 3
    met = {each.name: each.is_met for each in kpis(summary, DEFAULT_TARGETS)}
    assert met == {
        "min_quality_score": False,
        "max_dup_pct": False,
        "min_url_valid_pct": False,
        "min_domain_resolved_pct": True,
        "min_email_plausible_pct": True,
        "min_lines_per_s": False,
    }
    assert kpis(summary, {"min_lines_per_s": 50}, lines_per_s=50)[0].is_met
    assert summarise([]).quality_score is None


def test_every_format_holds_every_company_and_runs_nothing(tmp_path: Path) -> None:
    manifest = export(
        [HOSTILE, WHOLE], tmp_path, title="<b>Acme</b> | list", about={"run": "<i>7</i>"}
    )
    folder = Path(manifest.path)
    rows = list(csv.DictReader(io.StringIO((folder / "companies.csv").read_text())))
    assert [row["name"] for row in rows] == ["Acme Tools LLC", "'" + HOSTILE["name"]]
    assert rows[1]["city"] == "a\tb;'=1+1"
    assert rows[0]["sources"] == "dump:a; api:b"
    assert rows[0]["phone"] == WHOLE["phone"], "a number runs nothing, and is read by programs"
    lines = [
        msgspec.json.decode(line) for line in (folder / "companies.jsonl").read_bytes().splitlines()
    ]
    assert lines == parquet.read_table(folder / "companies.parquet").to_pylist()
    assert [line["name"] for line in lines] == ["Acme Tools LLC", HOSTILE["name"]]
    assert tuple(lines[0]) == FIELD_NAMES
    sheet = openpyxl.load_workbook(folder / "companies.xlsx").active
    assert sheet is not None
    cells = [cell for row in sheet.iter_rows() for cell in row]
    assert HOSTILE["name"] in [cell.value for cell in cells]
    assert not any(cell.data_type == "f" or cell.hyperlink for cell in cells)
    html = (folder / "quality_report.html").read_text()
    assert not [tag for tag in ("<script", "<b>", "<i>", " href=", " src=", "url(") if tag in html]
    assert html.count("<svg") >= 2
    assert "\\<b\\>" in (folder / "data_dictionary.md").read_text()


def test_equal_companies_give_equal_bytes_in_any_order(tmp_path: Path) -> None:
    one = export(companies(), tmp_path / "one")
    two = export(companies()[::-1], tmp_path / "two")
    for name in os.listdir(one.path):
        assert (Path(one.path) / name).read_bytes() == (Path(two.path) / name).read_bytes(), name
    for line in (Path(one.path) / "sha256.txt").read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((Path(one.path) / name).read_bytes()).hexdigest() == digest
    written = msgspec.json.decode((Path(one.path) / "manifest.json").read_bytes())
    assert written["companies"] == 30
    assert {each["name"] for each in written["files"]} < set(os.listdir(one.path))


def test_bad_requests_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format 'pdf'"):
        export([], tmp_path, formats=["pdf"])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "package").mkdir()
    with pytest.raises(Refused, match="no package of ours"):
        export([WHOLE], tmp_path)
    with new_package(tmp_path / "a"), pytest.raises(AlreadyRunning):
        export([WHOLE], tmp_path / "a")


def test_everything_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[tuple[str, str]] = []

    def noted(name: str, path_of: Callable[..., Any]) -> None:
        real = getattr(os, name)

        def act(*args: Any) -> Any:
            acts.append((name, Path(path_of(*args)).name))
            return real(*args)

        monkeypatch.setattr(os, name, act)

    noted("fsync", lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    noted("rename", lambda old, new: new)
    noted("replace", lambda old, new: new)
    made = export([WHOLE], tmp_path)
    place = Path(os.readlink(made.path)).name
    names = [each for kind, each in acts if kind == "fsync"]
    at = acts.index(("rename", place))
    assert set(os.listdir(made.path)) <= {name for kind, name in acts[:at] if kind == "fsync"}
    # The folder of the files, then the folder of the packages, the link, and the folder of the link.
    before = acts[at - 1]
    assert (before[0], before[1][:5]) == ("fsync", ".new-")
    assert [kind for kind, _ in acts[at:]] == ["rename", "fsync", "replace", "fsync"]
    assert names[-1] == tmp_path.name


# Where files are written, moved and removed: by us, or for us.
TRACED = ("/package/folder.py", "/package/export.py", "/package/tables.py", "/shutil.py")


def _killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a fork that dies at this line of our code; whether it got that far."""
    child = os.fork()
    if child == 0:
        lines = 0

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal lines
            if not frame.f_code.co_filename.endswith(TRACED):
                return None
            if event == "line":
                lines += 1
                if lines == step:
                    os._exit(9)
            return trace

        sys.settrace(trace)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def files_in(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.torture)])
def test_a_kill_at_any_line_leaves_the_old_package_or_the_new_one(
    tmp_path: Path, every: int
) -> None:
    old, new = [WHOLE], [WHOLE, {**WHOLE, "id": "3", "name": "Beta"}]
    formats = ["csv", "jsonl"]
    before, after = (
        files_in(Path(export(each, tmp_path / str(len(each)), formats=formats).path))
        for each in (old, new)
    )
    step, kills = 1, 0
    outdir = tmp_path / "out"
    while True:
        shutil.rmtree(outdir, ignore_errors=True)
        export(old, outdir, formats=formats)
        if not _killed_at(step, lambda: export(new, outdir, formats=formats)):
            break
        kills += 1
        left = files_in(outdir / "package")
        assert left in (before, after), f"half a package after a kill at line {step}"
        # The next export takes over, and leaves nothing lying about.
        made = export(new, outdir, formats=formats)
        assert files_in(Path(made.path)) == after
        assert sorted(each.name for each in (outdir / "packages").iterdir()) == [
            ".lock",
            Path(os.readlink(made.path)).name,
        ]
        step += every
    assert kills > 10
