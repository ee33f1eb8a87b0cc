"""Whatever is written on the command line ends in a line and an exit code, not in a traceback."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from penstock.cli import exits, main
from penstock.project import default_actor

ODD = ("9" * 20, "9" * 5000, "\udcff", "a\udcffb", "\u202e", "\x00", "٣" * 30)
COMMANDS = (
    ["explain"],
    ["runs"],
    ["jobs"],
    ["records"],
    ["pause"],
    ["resume"],
    ["cancel"],
    ["retry"],
    ["signal"],
    ["run"],
    ["checkpoints"],
    ["undo"],
    ["events", "--source"],
    ["quarantine", "show"],
    ["schedules", "explain"],
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_odd_arguments_are_refused_in_words(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "penstock.yaml").write_text("sources: {shop: {pipeline: 'a:b'}}\n")
    monkeypatch.chdir(tmp_path)
    for odd in ODD:
        code = main([*words, odd])
        told = capsys.readouterr().err
        assert code != exits.BUG, (odd, told)
        assert "Traceback" not in told
        assert all(line.isprintable() for line in told.splitlines())


def test_who_did_it_is_the_user_that_the_system_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    known = pwd.getpwuid(os.getuid()).pw_name
    for name in ("SUDO_USER", "LOGNAME", "USER"):
        monkeypatch.delenv(name, raising=False)
    assert default_actor() == known
    monkeypatch.setenv("LOGNAME", known)
    assert default_actor() == known
    monkeypatch.setenv("LOGNAME", "somebody\x1b else")
    assert default_actor() == f"{known} (says somebody else)"
