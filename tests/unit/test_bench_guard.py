"""The guard of the bench: what counts as slower, and what is said of a file that can't be compared with.

Nothing is measured here.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench import guard
from bench.guard import KEPT, WORK, Kept, WrongFile, compared, is_regression, read, table


def kept(tolerance: float = 0.15, **ratios: float) -> Kept:
    return Kept("2026-11-19", "2 cores", 0.2, tolerance, dict.fromkeys(WORK, 0.1) | ratios)


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(0.1, "same"), (0.0851, "same"), (0.0849, "SLOWER"), (0.1149, "same"), (0.1151, "faster")],
)
def test_a_row_is_slower_only_beyond_the_tolerance(ratio: float, verdict: str) -> None:
    lines = compared(dict.fromkeys(WORK, 0.1) | {"site": ratio}, kept())
    assert [line.verdict for line in lines if line.row == "site"] == [verdict]
    assert {line.verdict for line in lines if line.row != "site"} == {"same"}
    assert is_regression(lines) == (verdict == "SLOWER")


def test_one_row_that_is_slower_is_not_outweighed_by_others_that_are_faster() -> None:
    lines = compared(dict.fromkeys(WORK, 0.5) | {"records": 0.05}, kept())
    assert is_regression(lines)


def test_the_table_fits_into_the_body_of_a_commit() -> None:
    lines = compared(dict.fromkeys(WORK, 0.05) | {"site": 0.2}, kept())
    shown = list(table(lines, kept(), load=12.5))
    assert max(map(len, shown)) <= 72
    for row in WORK.values():
        assert sum(row in line for line in shown) == 1
    assert "-50%  SLOWER" in "\n".join(shown)
    assert "+100%  faster" in "\n".join(shown)


def test_the_file_in_the_repository_has_exactly_the_rows_that_are_measured() -> None:
    assert read(KEPT).ratios.keys() == WORK.keys()
    assert [each.name for each in guard.workloads()] == list(WORK)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is missing: make bench-guard ARGS=--keep"),
        ("{", "is wrong: "),
        ("[]", "is wrong: "),
        ('{"ratios": {}}', "is wrong: "),
        (msgspec.json.encode(kept(site=-1.0)).decode(), "is wrong: "),
        (msgspec.json.encode(kept(tolerance=2.0)).decode(), "is wrong: "),
        (msgspec.json.encode(kept(speed=1.0)).decode(), "has other rows (speed)"),
        ("\udcff", "is wrong: "),
    ],
)
def test_a_file_that_is_missing_or_wrong_is_one_line_and_nothing_is_measured(
    text: str | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "guard.json"
    if text is not None:
        file.write_bytes(text.encode(errors="surrogateescape"))
    monkeypatch.setattr(guard, "KEPT", file)
    monkeypatch.setattr("sys.argv", ["bench.guard"])
    monkeypatch.setattr(guard, "measure", pytest.fail)
    with pytest.raises(WrongFile):
        read(file)
    assert guard.main() == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert said in output.err
