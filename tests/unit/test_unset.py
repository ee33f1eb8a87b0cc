"""A variable that is not set stops what needs it, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli import exits, main
from penstock.errors import ConfigError
from penstock.project import Project
from penstock.settings import load_settings
from penstock.settings.dotenv import parse_dotenv

MODULE = "unset_pipelines"
PIPELINES = """
from penstock import Pipeline

things = Pipeline("things")


@things.step(unit="run")
def begin(ctx):
    ctx.save("thing", key=ctx.source, data={})
"""
CONFIG = f"""\
sources:
  open:
    pipeline: {MODULE}:things
  closed.example:
    pipeline: {MODULE}:things
    schedule: {{every: 1h}}
    limits: {{concurrency: 3}}
    fetch: {{headers: {{Authorization: "Bearer ${{SHOP_TOKEN}}"}}}}
"""
LOOKING = (
    ["status"],
    ["sources"],
    ["sources", "--json"],
    ["runs"],
    ["jobs"],
    ["events"],
    ["records"],
    ["schedules"],
    ["explain", "closed.example"],
    ["quarantine", "list"],
    ["budget"],
    ["db", "check"],
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / f"{MODULE}.py").write_text(PIPELINES)
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    yield tmp_path
    sys.modules.pop(MODULE, None)


def dotenv(folder: Path, text: str, mode: int = 0o600) -> None:
    (folder / ".env").write_text(text)
    (folder / ".env").chmod(mode)


def test_looking_goes_on_with_a_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "open", "--detach"]) == exits.DONE
    for words in LOOKING:
        capsys.readouterr()
        assert main(list(words)) == exits.DONE, words
        assert "SHOP_TOKEN is not set: closed.example can't run" in capsys.readouterr().err


def test_only_the_source_that_needs_the_variable_can_not_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "closed.example"]) == exits.USAGE
    told = capsys.readouterr().err
    assert "penstock.yaml:8: sources.closed.example.fetch.headers.Authorization: " in told
    assert "the environment variable SHOP_TOKEN is not set" in told
    assert ".env" in told
    assert main(["run", "--all", "--detach"]) == exits.DONE
    assert "left out: closed.example: SHOP_TOKEN is not set" in capsys.readouterr().err
    with Project.load(folder) as project:
        assert [row.source for row in project.connection.runs.newest()] == ["open"]


def test_a_project_of_which_nothing_can_run_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text(
        f"sources: {{a: {{pipeline: '{MODULE}:things', params: {{t: '${{T}}'}}}}}}\n"
    )
    assert main(["up", "--until-idle"]) == exits.USAGE
    assert "the environment variable T is not set" in capsys.readouterr().err


def test_explain_names_the_variable(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["explain", "closed.example"], ["explain", "closed.example", "--json"]):
        assert main(words) == exits.DONE
        told = capsys.readouterr().out
        assert "SHOP_TOKEN is not set" in told
        assert "set SHOP_TOKEN, in the environment or in .env" in told
    assert main(["explain", "open"]) == exits.DONE
    assert "SHOP_TOKEN" not in capsys.readouterr().out


def test_a_source_keeps_the_settings_that_need_no_variable(folder: Path) -> None:
    closed = load_settings(folder).sources["closed.example"]
    assert closed.limits.concurrency == 3
    assert [each.every_s for each in closed.schedules] == [3600.0]
    assert dict(closed.fetch.headers) == {}


def test_a_source_that_makes_no_sense_without_it_can_be_looked_at(folder: Path) -> None:
    (folder / "penstock.yaml").write_text("sources:\n  a: {pipeline: '${P}', schedule: ['${X}']}\n")
    settings = load_settings(folder, environ={})
    assert [each.name for each in settings.sources["a"].unset] == ["P", "X"]


MISTAKEN = """\
sources:
  a:
    pipeline: "${P}"
    fetch: {headers: {Authorization: "${TOKEN}"}, tmeout: 5s}
    limits: {concurrency: many, rate: "${RATE}"}
    priorty: 3
    schedule: {cron: "${CRON}"}
  b: {pipeline: "m:p", timeout: soon}
"""


def test_a_source_that_needs_a_variable_is_checked_for_its_other_mistakes(folder: Path) -> None:
    (folder / "penstock.yaml").write_text(MISTAKEN)
    with pytest.raises(ConfigError) as caught:
        load_settings(folder, environ={})
    told = [each.split(": ")[1] for each in caught.value.mistakes]
    assert told == [
        "sources.a.fetch.tmeout",
        "sources.a.limits.concurrency",
        "sources.a.priorty",
        "sources.b.timeout",
    ]


@pytest.mark.parametrize(
    "setting", ["hooks: [{url: '${U}'}]", "budget: {requests: '${U}'}", "worker: {slots: '${U}'}"]
)
def test_nothing_runs_without_what_the_whole_project_needs(
    folder: Path, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text(f"{setting}\n{CONFIG}")
    assert main(["run", "open", "--detach"]) == exits.USAGE
    assert "the environment variable U is not set" in capsys.readouterr().err
    assert main(["status"]) == exits.DONE
    assert "U is not set, which" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["store", "snapshots", "project"])
def test_nothing_is_looked_at_where_it_is_not_known_what(folder: Path, key: str) -> None:
    (folder / "penstock.yaml").write_text(f"{key}: 'x${{U}}'\n{CONFIG}")
    assert main(["status"]) == exits.USAGE


def test_a_token_that_is_not_set_does_not_open_the_trigger(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text(f"trigger: {{token: '${{U}}'}}\n{CONFIG}")
    assert main(["trigger", "serve", "--port", "0"]) == exits.USAGE
    assert "the environment variable U is not set" in capsys.readouterr().err
    assert main(["run", "open", "--detach"]) == exits.DONE


def test_variables_come_from_dotenv_and_the_real_environment_wins(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dotenv(folder, "SHOP_TOKEN='from the file'\n")
    settings = load_settings(folder, environ={})
    assert (
        settings.sources["closed.example"].fetch.headers["Authorization"] == "Bearer from the file"
    )
    assert "from the file" in settings.secrets
    assert settings.warnings == ()
    settings = load_settings(folder, environ={"SHOP_TOKEN": "real"})
    assert settings.sources["closed.example"].fetch.headers["Authorization"] == "Bearer real"


def test_dotenv_that_others_can_read_is_warned_about(folder: Path) -> None:
    dotenv(folder, "SHOP_TOKEN=x\n", 0o644)
    [warning] = load_settings(folder, environ={}).warnings
    assert warning.endswith(".env: others can read it; run `chmod 600 .env`")


def test_dotenv_that_others_can_write_is_refused(folder: Path) -> None:
    dotenv(folder, "SHOP_TOKEN=x\n", 0o602)
    with pytest.raises(ConfigError, match="everybody can write it"):
        load_settings(folder, environ={})


def test_a_pipe_for_dotenv_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / ".env", 0o600)
    assert "is not a regular file" in load_settings(folder, environ={}).warnings[0]


def test_dotenv_is_read_as_it_is_documented() -> None:
    values, unread = parse_dotenv(
        "# a comment\n\nA=1\nexport B = two words  # a comment\nC='$X # \\n'\n"
        'D="a\\nb \\"c\\" \\$X \\w" # a comment\nE=\nF=a#b\nG="first\nsecond"\n'
        "not a line\nH=x'y\nI=\"no end\nJ=# empty\nA=2"
    )
    assert values == {
        "A": "2",
        "B": "two words",
        "C": "$X # \\n",
        "D": 'a\nb "c" $X \\w',
        "E": "",
        "F": "a#b",
        "G": "first\nsecond",
        "H": "x'y",
        "J": "",
    }
    assert unread == [11, 13]


def test_a_line_that_can_not_be_read_is_named_without_what_it_says(folder: Path) -> None:
    dotenv(folder, "SHOP_TOKEN=x\nthis is not a line: hunter2\n")
    [warning] = load_settings(folder, environ={}).warnings
    assert warning.endswith(".env:2: is not NAME=value; left out")
