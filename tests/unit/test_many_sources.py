"""With thousands of sources a command asks the store as often as with ten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.cli.entry import main
from penstock.project import opened
from penstock.store.sqlite.database import SqliteDatabase
from tests.contract.scenes import PLAIN_STEPS

FEW, MANY = 10, 100


def project_of(folder: Path, sources: int) -> Path:
    folder.mkdir()
    (folder / "steps.py").write_text(PLAIN_STEPS, "utf-8")
    each = "  s{}.example: {{pipeline: 'steps:plain', schedule: {{cadence: auto}}}}\n"
    listed = "".join(each.format(number) for number in range(sources))
    (folder / "penstock.yaml").write_text(f"project: many\nsources:\n{listed}", "utf-8")
    return folder


class Counted:
    """How often the store was asked, and how often a source's limits were worked out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.questions = self.limits = 0
        for name in ("do", "rows", "value", "now"):
            monkeypatch.setattr(SqliteDatabase, name, self._asked(getattr(SqliteDatabase, name)))
        usual = opened.lane_limits

        def lane_limits(source: Any) -> Any:
            self.limits += 1
            return usual(source)

        monkeypatch.setattr(opened, "lane_limits", lane_limits)

    def _asked(self, usual: Any) -> Any:
        def ask(*given: Any, **values: Any) -> Any:
            self.questions += 1
            return usual(*given, **values)

        return ask


@pytest.mark.parametrize("words", [["sources"], ["sources", "--json"], ["status"]], ids=" ".join)
def test_looking_at_many_sources_asks_no_more_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    counted = Counted(monkeypatch)
    asked = []
    for sources in (FEW, MANY):
        folder = project_of(tmp_path / str(sources), sources)
        for _ in range(2):  # the first one makes the database
            before = counted.questions
            assert main(["--project", str(folder), *words]) == 0
        asked.append(counted.questions - before)
    assert asked[0] == asked[1]
    assert counted.limits <= 2 * (FEW + MANY)


def test_starting_many_sources_takes_a_fixed_number_of_questions_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    asked = []
    for sources in (FEW, MANY):
        folder = project_of(tmp_path / str(sources), sources)
        before = counted.questions
        assert main(["--project", str(folder), "run", "--all", "--detach"]) == 0
        asked.append(counted.questions - before)
    assert asked[1] - asked[0] <= 14 * (MANY - FEW)
