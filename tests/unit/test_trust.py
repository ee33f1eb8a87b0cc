"""A project that was found, and not named, is obeyed only if nobody else could have put it there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from penstock.cli import exits, main
from penstock.errors import ConfigError
from penstock.settings import find_project

MODULE = "untrusted_pipelines"
CONFIG = f"sources:\n  shop:\n    pipeline: {MODULE}:things\n    schedule: {{every: 1h}}\n"
STRANGER = 43_210
# Every command that only looks, with words that make it answer.
LOOKING = (
    ["status"],
    ["explain", "shop"],
    ["sources"],
    ["runs"],
    ["jobs"],
    ["records"],
    ["rejects", "list"],
    ["checkpoints", "shop"],
    ["events"],
    ["workers"],
    ["signals"],
    ["hooks"],
    ["breakers"],
    ["budget"],
    ["kpis"],
    ["quarantine", "list"],
    ["schedules"],
    ["schedules", "next"],
    ["schedules", "explain", "shop"],
    ["simulate", "--days", "1"],
    ["export", "crontab"],
    ["db", "check"],
    ["db", "migrate", "--plan"],
    ["logs", "1"],
    ["page", "1"],
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    above = tmp_path / "above"
    (above / "below").mkdir(parents=True)
    above.chmod(0o755)
    (above / "penstock.yaml").write_text(CONFIG)
    (above / "penstock.yaml").chmod(0o644)
    monkeypatch.chdir(above / "below")
    return above


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the path belong to somebody else: its owner changes where we may do that, else we do."""
    if os.geteuid() == 0:
        os.chown(path, STRANGER, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)


@pytest.mark.parametrize("what", ["penstock.yaml", "."])
def test_a_project_of_another_user_is_refused_unless_it_is_named(
    folder: Path, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert find_project(folder / "below") == folder / "penstock.yaml"
    give_away(folder / what, monkeypatch)
    assert main(["status"]) == exits.USAGE
    told = capsys.readouterr().err
    assert "is not used unless it is named" in told
    assert f"--project {folder}" in told
    assert main(["schedules", "next", "--project", str(folder)]) == exits.DONE


@pytest.mark.parametrize(("what", "mode"), [("penstock.yaml", 0o646), (".", 0o757), (".", 0o1777)])
def test_a_project_that_everybody_can_write_is_refused(folder: Path, what: str, mode: int) -> None:
    (folder / what).chmod(mode)
    with pytest.raises(ConfigError, match="can be written by everybody"):
        find_project(folder / "below")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other groups")
def test_a_project_that_another_group_can_write_is_refused(folder: Path) -> None:
    (folder / "penstock.yaml").chmod(0o664)
    assert find_project(folder) == folder / "penstock.yaml"
    os.chown(folder / "penstock.yaml", -1, STRANGER)
    with pytest.raises(ConfigError, match=f"can be written by the group {STRANGER}"):
        find_project(folder)


def test_looking_imports_no_code_of_the_project(folder: Path) -> None:
    ran = folder / "ran"
    (folder / f"{MODULE}.py").write_text(f"import os\nos.mkdir({str(ran)!r})\nraise SystemExit\n")
    for words in LOOKING:
        main(list(words))
        assert not ran.exists(), words
        assert MODULE not in sys.modules
    main(["run", "shop"])
    assert ran.exists()
