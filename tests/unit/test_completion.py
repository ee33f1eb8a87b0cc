"""What the shell completes: commands, options, and names out of penstock.yaml and the database."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import exits, main
from penstock.testing import VirtualClock
from tests.contract.scenes import SQLITE, World, fill


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose code can't be imported, and whose variables are not set."""
    (tmp_path / "penstock.yaml").write_text(
        "sources:\n  acme.com: {pipeline: 'broken:p', params: {key: '${NOT_SET_ANYWHERE}'}}\n"
        "  archive.org: {pipeline: 'broken:p'}\n  news: {pipeline: 'broken:p'}\n"
    )
    (tmp_path / "broken.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("exp", ["explain", "export"]),
        ("run a", ["acme.com", "archive.org"]),
        ("explain ne", ["news"]),
        ("jobs --so", ["--source"]),
        ("jobs --source n", ["news"]),
        ("quarantine re", ["release"]),
        ("quarantine list --so", ["--source"]),
        ("run --kind st", ["stream"]),
        ("run --kind=st", ["stream"]),
        ("run --kind = st", ["stream"]),
        ("jobs --state q", ["queued", "quarantined"]),
        ("quarantine list --kind pe", ["permanent"]),
        ("events --kind pe", []),
        ("events --kind job.re", ["job.released", "job.requeued", "job.retry_scheduled"]),
        ("events --kind lea", ["leader", "leader.elected", "leader.resigned"]),
        ("runbook so", ["source-broke"]),
        ("runbook source-broke a", ["acme.com", "archive.org"]),
        ("runbook source-broke acme.com --step co", ["compare", "commit", "confirm"]),
        ("--project nowhere run a", []),
        ("jobs 3 ", []),
    ],
)
def test_tab_completes_commands_options_and_sources(
    shop: Path, capsys: pytest.CaptureFixture[str], line: str, found: list[str]
) -> None:
    assert main(["completion", "bash", "--", *line.split(" ")]) == exits.DONE
    assert capsys.readouterr().out.split() == found


# What the script hands to zsh is printed instead; `complete -C` is fish's own way to ask.
IN_SHELLS = {
    "bash": """
source <(penstock completion bash)
COMP_WORDS=(penstock @LINE@); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
complete -p penstock >/dev/null && _penstock
((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -f "${COMP_WORDS[COMP_CWORD]}")
printf '%s\\n' "${COMPREPLY[@]}"
""",
    "zsh": """
compdef() { }
compadd() { print -rl -- "${(@P)argv[-1]}" }
_files() { print -rl -- "$words[CURRENT]"*(N) }
source <(penstock completion zsh)
words=(penstock @LINE@); CURRENT=$#words
_penstock
""",
    "fish": 'penstock completion fish | source; complete -C "penstock @LINE@" | string split -f1 \\t',
}
WITHOUT_CONFIG = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}


def completed(shell: str, words: str, folder: Path) -> list[str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed here")
    done = subprocess.run(
        [program, WITHOUT_CONFIG[shell], "-c", IN_SHELLS[shell].replace("@LINE@", words)],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "found"),
    [("run ac", "acme.com"), ("stat", "status"), ("page 1 --output pens", "penstock.yaml")],
)
@pytest.mark.parametrize("shell", IN_SHELLS)
def test_shells_complete_with_the_script_that_is_printed(
    shop: Path, shell: str, words: str, found: str
) -> None:
    assert completed(shell, words, shop) == [found]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_asks_for_its_words(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == exits.DONE
    assert f"penstock completion {shell} -- " in capsys.readouterr().out


# Out of the database.


@pytest.fixture
def filled(shop: Path) -> Path:
    """Two runs, three records, two partitions, a quarantined job, and the breaker of a host."""
    world = World(SQLITE, shop / "penstock.db")
    fill(world)
    world.store.close()
    return shop


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cancel ", ["2\tnews full failed", "1\tacme.com full completed"]),
        ("jobs --source acme.com --run ", ["1\tacme.com full completed"]),
        ("explain --run=2", ["--run=2\tnews full failed"]),
        ("quarantine show ", ["2\tnews discover"]),
        ("jobs --source news --stage ex", ["extract"]),
        ("quarantine list --cause ", ["no price\t1 failed"]),
        ("records p", ["product\t3 records"]),
        ("records product --key h", ["https://acme.com/1"]),
        ("records --key h", []),
        ("checkpoint rewind acme.com ", ["eur\t7", "usd\t8"]),
        ("checkpoint rewind acme.com eur ", []),
        ("checkpoints news --history ", []),
        ("breaker close cd", ["cdn.example.com\topen"]),
    ],
)
def test_tab_completes_names_in_the_database(
    filled: Path, capsys: pytest.CaptureFixture[str], line: str, found: list[str]
) -> None:
    assert main(["completion", "fish", "--", *line.split(" ")]) == exits.DONE
    assert capsys.readouterr().out.splitlines() == found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (r"records product --key 'blue\ t'", [r"blue\ two"]),
        ("records product --key https : //a", ["//acme.com/1"]),
    ],
)
def test_bash_completes_keys_as_they_have_to_be_typed(
    filled: Path, words: str, found: list[str]
) -> None:
    assert completed("bash", words, filled) == found


@pytest.mark.parametrize("shell", IN_SHELLS)
def test_shells_complete_runs(filled: Path, shell: str) -> None:
    assert completed(shell, "cancel 2", filled) == ["2"]


@pytest.mark.parametrize("is_in_use", [False, True])
def test_tab_writes_nothing(
    filled: Path, capsys: pytest.CaptureFixture[str], is_in_use: bool
) -> None:
    store = SQLITE.open(filled / "penstock.db", VirtualClock()) if is_in_use else None
    before = files_of(filled)
    assert main(["completion", "bash", "--", "cancel", ""]) == exits.DONE
    assert capsys.readouterr().out.split() == ["2", "1"]
    assert files_of(filled) == before
    if store is not None:
        store.close()


def files_of(folder: Path) -> dict[str, bytes]:
    """The index of the log is memory that its readers share: they note in it how far they have read."""
    return {
        each.name: each.read_bytes() if not each.name.endswith("-shm") else b""
        for each in folder.iterdir()
        if each.is_file()
    }


@pytest.mark.parametrize("database", [None, b"", b"not a database at all" * 100])
def test_tab_is_silent_where_there_is_no_database(
    shop: Path, capsys: pytest.CaptureFixture[str], database: bytes | None
) -> None:
    if database is not None:
        (shop / "penstock.db").write_bytes(database)
    before = files_of(shop)
    assert main(["completion", "bash", "--", "cancel", ""]) == exits.DONE
    assert capsys.readouterr() == ("", "")
    assert files_of(shop) == before
