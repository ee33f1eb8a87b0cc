"""`penstock audit`: the chain over the journal, from the command line and in a file without Penstock."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock import Project
from penstock.cli import exits, main
from penstock.engine.leader.anchors import AnchorChore
from penstock.engine.leader.hooks import HookChore
from penstock.journal.origin import acting_from
from penstock.testing import VirtualClock

DOCS = Path(__file__).parents[2] / "docs" / "audit.md"
DAY_S = 86_400.0
CONFIG = """\
project: shop
sources:
  acme.com: {pipeline: "audited_steps:things"}
"""
STEPS = """
from penstock import Pipeline

things = Pipeline("things")


@things.step(unit="run")
def begin(ctx):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "audited_steps.py").write_text(STEPS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("audited_steps", None)


def answer(capsys: pytest.CaptureFixture[str], *words: str, code: int = exits.DONE) -> Any:
    capsys.readouterr()
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def change(folder: Path, sql: str) -> None:
    connection = apsw.Connection(str(folder / "penstock.db"))
    connection.execute(sql)
    connection.close()


def test_verify_names_the_changed_event_and_ends_with_a_code_of_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pause", "acme.com", "--reason", "the shop is closed"]) == exits.DONE
    head = answer(capsys, "audit", "head", "--anchor", "anchors.jsonl")
    assert (head["project"], head["seal"], head["unsealed"]) == ("shop", 1, 0)
    found = answer(capsys, "audit", "verify", "--anchor", "anchors.jsonl")
    assert (found["sound"], found["anchors"], found["findings"]) == (True, 1, [])
    [paused] = answer(capsys, "events", "--kind", "source.paused")
    assert (paused["origin"], paused["data"]["reason"]) == ("cli", "the shop is closed")

    change(folder, f"UPDATE event SET actor = 'nobody' WHERE id = {paused['event']}")

    found = answer(capsys, "audit", "verify", code=exits.STORE)
    assert [(each["what"], each["event"]) for each in found["findings"]] == [
        ("event_changed", paused["event"])
    ]


def test_anchored_chain_that_was_made_anew_is_found_and_a_wrong_file_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["pause", "acme.com"])
    main(["audit", "head", "--anchor", "anchors.jsonl"])
    main(["audit", "head", "--anchor", "anchors.jsonl"])
    assert len((folder / "anchors.jsonl").read_text().splitlines()) == 1
    change(folder, "DELETE FROM event WHERE kind = 'source.paused'")
    change(folder, "DELETE FROM seal")
    main(["resume", "acme.com"])
    main(["audit", "head", "--anchor", "other.jsonl"])

    assert answer(capsys, "audit", "verify")["sound"]
    found = answer(capsys, "audit", "verify", "--anchor", "anchors.jsonl", code=exits.STORE)
    assert [each["what"] for each in found["findings"]] == ["anchor_differs"]

    (folder / "wrong").write_text("hello\n")
    assert main(["audit", "verify", "--anchor", "wrong"]) == exits.USAGE
    assert main(["audit", "verify", "--anchor", "missing"]) == exits.USAGE
    assert main(["audit", "head", "--anchor", "no/such/folder"]) == exits.USAGE


def test_exported_chain_is_checked_by_the_program_in_the_documentation(folder: Path) -> None:
    project = Project.load(folder)
    with acting_from("dashboard"):
        project.sources.pause("acme.com", actor="ann", reason="„geschlossen“ \U0001f512")
    project.sources.resume("acme.com", actor="ann")
    project.audit.head(anchor=folder / "anchors")
    lines = list(project.audit.export())
    project.close()
    [program] = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (folder / "check.py").write_text(program)

    def checked(*said: str) -> int:
        (folder / "audit.jsonl").write_text("\n".join(said) + "\n")
        command = [sys.executable, "check.py", "audit.jsonl"]
        return subprocess.run(command, capture_output=True, cwd=folder, check=False).returncode

    assert {json.loads(line).get("origin") for line in lines} >= {"dashboard", "python"}
    assert checked(*lines) == 0
    assert checked(*(line.replace("ann", "bob") for line in lines)) == 1
    assert checked(*(line for line in lines if "source.paused" not in line)) == 1


def test_head_goes_to_a_hook_once_a_day_and_what_it_keeps_is_an_anchor_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep = folder / "kept.jsonl"
    command = ["/bin/sh", "-c", f"cat >>{keep}; echo >>{keep}"]
    hook = {"name": "notary", "on": ["audit.head"], "command": command}
    (folder / "penstock.yaml").write_text(f"{CONFIG}hooks: {json.dumps([hook])}\n")
    assert main(["pause", "acme.com"]) == exits.DONE
    with Project.load(folder) as project:
        project.clock = clock = VirtualClock(project.clock.now())
        store = project.connection
        store.audit.seal_all()
        hooks = HookChore(project, store)
        hooks.plan()
        for leader in range(3):
            AnchorChore(project, store).look()
            hooks.part()
            assert len(keep.read_text().splitlines()) == 1, leader
        clock.advance(DAY_S + 1.0)
        AnchorChore(project, store).look()
        hooks.part()
        assert len(keep.read_text().splitlines()) == 2
        assert [each.hook for each in project.hooks.each()] == ["notary", "notary"]
    assert answer(capsys, "audit", "verify", "--anchor", str(keep))["anchors"] == 2
    change(folder, "DELETE FROM seal")
    found = answer(capsys, "audit", "verify", "--anchor", str(keep), code=exits.STORE)
    assert {each["what"] for each in found["findings"]} == {"anchor_missing"}


def test_restored_backup_holds_its_seals_and_says_which_anchors_it_lacks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["pause", "acme.com"])
    main(["audit", "head", "--anchor", "anchors.jsonl"])
    assert main(["db", "backup", "backup.db"]) == exits.DONE
    assert answer(capsys, "audit", "verify", "--anchor", "anchors.jsonl")["sound"]
    main(["resume", "acme.com"])
    main(["audit", "head", "--anchor", "anchors.jsonl"])

    assert main(["db", "restore", "backup.db", "--yes"]) == exits.DONE
    assert answer(capsys, "audit", "verify")["sound"]
    found = answer(capsys, "audit", "verify", "--anchor", "anchors.jsonl", code=exits.STORE)
    assert [each["what"] for each in found["findings"]] == ["anchor_missing"]
    change(folder, "UPDATE event SET actor = 'nobody' WHERE kind = 'source.paused'")
    found = answer(capsys, "audit", "verify", code=exits.STORE)
    assert [each["what"] for each in found["findings"]] == ["event_changed"]
