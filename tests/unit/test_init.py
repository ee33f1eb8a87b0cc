"""A new project is called what its folder is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli import exits, main
from penstock.settings import load_settings


@pytest.mark.parametrize(
    "name",
    ["shop-watch", "prices 2026", "true", "2026", "läden: alle", 'with "quotes"', "a#b", "${HOME}"],
)
def test_a_new_project_has_the_name_of_its_folder(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / name)]) == exits.DONE
    assert load_settings(tmp_path / name, environ={}).project == name
    assert (
        "my-project" not in (tmp_path / name / "penstock.yaml").read_text().partition("\n    #")[0]
    )


def test_a_project_in_this_folder_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["init"]) == exits.DONE
    assert load_settings(tmp_path / "here", environ={}).project == "here"
