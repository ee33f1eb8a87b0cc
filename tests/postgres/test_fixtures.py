"""Asking for servers: what is missing is said, what is shared is started once, nothing outlasts the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres.installations import CHOSEN as POSTGRES
from tests.postgres.server import Server
from tests.postgres.workspace import ROOT, Workspace, account, living_in, until
from tests.programs import PROGRAMS

PGBOUNCER = PROGRAMS["pgbouncer"].variable
NEEDS_POSTGRES = """
def test_postgres(database): pass
def test_postgres_of_each_version(each_postgres): pass
def test_pgbouncer(pgbouncer): pass
def test_neither(): pass
"""
NEEDS_PGBOUNCER = """
def test_postgres(database): pass
def test_pgbouncer(pgbouncer): pass
"""
TELLS_WHERE = """
import os, pathlib, pytest

@pytest.mark.parametrize("n", range(6))
def test_tells(postgres, pgbouncer, database, n):
    pathlib.Path(os.environ["TOLD"], f"{os.getpid()}-{n}").write_text(
        f"{postgres.port} {pgbouncer.port} {database.rpartition('/')[2]} {postgres.workspace.path}"
    )
"""
QUICK = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
WAITS = TELLS_WHERE + "    pathlib.Path(os.environ['GATE']).read_bytes()\n"


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """A folder for tests that see the fixtures of this repository and nothing else of it."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.postgres.fixtures"]\n')
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    (tmp_path / "told").mkdir()
    return tmp_path


def start(tests: Path, text: str, *options: str, **environment: str) -> subprocess.Popen[str]:
    (tests / "test_them.py").write_text(text)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *QUICK, *options, tests],
        cwd=tests,
        env={**ours, "CI": "", "TOLD": str(tests / "told"), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(tests: Path, text: str, *options: str, **environment: str) -> tuple[int, str]:
    with start(tests, text, *options, **environment) as pytest_run:
        said, _ = pytest_run.communicate()
    return pytest_run.returncode, said


def told(tests: Path) -> list[list[str]]:
    return [note.read_text().split() for note in (tests / "told").iterdir()]


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_without_postgres_the_run_says_loudly_what_it_did_not_test(
    tests: Path, options: list[str]
) -> None:
    code, said = run(tests, NEEDS_POSTGRES, *options, **{POSTGRES: "/nowhere"})
    assert code == 0
    assert "1 passed, 3 skipped" in said
    assert "NOT TESTED" in said
    assert "3 tests. MISSING: Postgres. To get it: `make setup`" in said


def test_without_pgbouncer_only_that_is_missing(tests: Path) -> None:
    _, said = run(tests, NEEDS_PGBOUNCER, **{PGBOUNCER: "/nowhere"})
    assert "1 tests. MISSING: PgBouncer. To get it: install it" in said
    assert "1 passed, 1 skipped" in said


@pytest.mark.parametrize("variable", [POSTGRES, PGBOUNCER], ids=["postgres", "pgbouncer"])
def test_under_ci_what_is_missing_is_a_failure(tests: Path, variable: str) -> None:
    code, said = run(tests, NEEDS_PGBOUNCER, **{variable: "/nowhere"}, CI="true")
    assert code == 1
    assert "skipped" not in said
    assert "MISSING: " in said


def test_all_workers_share_one_server_and_no_database(tests: Path) -> None:
    code, said = run(tests, TELLS_WHERE, "-n", "2")
    assert code == 0, said
    postgres, pgbouncer, databases, workspaces = map(set, zip(*told(tests), strict=True))
    assert len(postgres) == len(pgbouncer) == len(workspaces) == 1
    assert len(databases) == 6
    assert_nothing_is_left(Path(workspaces.pop()))


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_run_that_is_killed_leaves_nothing_behind(tests: Path, options: list[str]) -> None:
    gate = tests / "gate"
    os.mkfifo(gate)
    with start(tests, WAITS, *options, GATE=str(gate)) as pytest_run:
        try:
            until("the servers are there", lambda: any(map(len, told(tests))), patience_s=120)
        finally:
            pytest_run.send_signal(signal.SIGKILL)
    workspace = Path(told(tests)[0][3])
    until("everything is gone", lambda: not workspace.exists())
    assert_nothing_is_left(workspace)


def assert_nothing_is_left(workspace: Path) -> None:
    assert not workspace.exists()
    assert living_in(workspace) == []


def test_a_run_that_wants_no_server_makes_no_folder(tests: Path) -> None:
    text = "def test_it(workspace): assert not workspace.path.exists()"
    code, said = run(tests, text)
    assert code == 0, said


def test_programs_out_of_reach_are_copied_to_where_they_can_be_run(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    if account() is None:
        pytest.skip("only root runs servers as somebody else")
    monkeypatch.setattr("tests.postgres.installations.can_be_reached", lambda path: False)
    workspace = Workspace.of_this_run()
    before = os.umask(0o077)
    try:
        server = Server.start(postgres.installation, workspace)
        assert server.installation.bin.is_relative_to(workspace.programs)
        server.close()
    finally:
        os.umask(before)
        workspace.close()
    assert not workspace.programs.exists()
