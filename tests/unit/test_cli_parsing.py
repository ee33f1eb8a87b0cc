"""How a command line is read, and what is said about a wrong one."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from penstock.cli import exits, main
from penstock.cli.command_list import LISTED
from penstock.cli.entry import parser_for
from penstock.cli.parser import STOPPING, Parser
from penstock.errors import UsageError

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def parsed(line: str) -> argparse.Namespace:
    words = shlex.split(line)
    return parser_for(words).parse_args(words, argparse.Namespace(project=None, env=None))


def refused(line: str) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        parsed(line)
    return caught.value.message, caught.value.hint


def help_of(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*line.split(), "--help"]) == 0
    return capsys.readouterr().out


HELP = "penstock {} --help has an example"
GLOBAL = "known: --cell, --env, --help, --project, --version, -h"
COMMANDS = [
    *LISTED,
    *(f"db {verb}" for verb in ("check", "backup", "restore", "migrate", "copy")),
    *(f"export {target}" for target in ("github-actions", "crontab", "systemd")),
    *(f"breaker {verb}" for verb in ("open", "close")),
    *(f"config {verb}" for verb in ("check", "show", "schema")),
    *(f"rejects {verb}" for verb in ("list", "show", "redrive")),
    *(f"quarantine {verb}" for verb in ("list", "show", "release", "discard", "export", "note")),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = help_of(command, capsys)
    examples = text.partition("examples:\n")[2]
    assert f"  penstock {command}" in examples


def test_help_shows_the_commands_in_five_groups(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("", capsys)
    titles = re.findall(r"^(\w+) - .*:$", text, re.MULTILINE)
    assert titles == ["run", "look", "mend", "plan", "operate"]


@pytest.mark.parametrize("words", ["", "run", "quarantine list"])
def test_help_is_a_command_too(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", *words.split()]) == exits.DONE
    assert capsys.readouterr().out == help_of(words, capsys)


@pytest.mark.parametrize(
    "line", ["hold", "pause", "cancel", "undo", "quarantine discard", "db restore", "breaker open"]
)
def test_a_mistyped_command_is_never_taken_for_one_that_stops_or_removes_something(
    line: str,
) -> None:
    *before, word = line.split()
    for mistyped in (word[:-1], word + "e", word[1:], word[1] + word[0] + word[2:]):
        message, hint = refused(" ".join([*before, mistyped]))
        assert message == f"there is no command {mistyped!r}"
        assert not re.search(rf"did you mean '({'|'.join(STOPPING)})'", hint)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("", capsys)
    for command in LISTED:
        assert re.search(rf"^ +{command} ", text, re.MULTILINE)


@pytest.mark.parametrize(
    "command", ["status", "sources", "runs", "jobs", "records", "breakers", "events", "workers"]
)
def test_every_command_that_lists_has_json(command: str) -> None:
    assert parsed(f"{command} --json").json is True


@pytest.mark.parametrize(
    "line",
    [
        "quarantine list",
        "quarantine show 345",
        "rejects list",
        "rejects show 7",
        "runs show 12",
        "kpis",
    ],
)
def test_quarantine_can_be_read_by_programs(line: str) -> None:
    assert parsed(f"{line} --json").json is True


@pytest.mark.parametrize(
    "line",
    [
        "--project here --env live jobs 7",
        "jobs 7 --project here --env live",
        "--env live jobs --project here 7",
    ],
)
def test_project_and_environment_may_stand_anywhere(line: str) -> None:
    args = parsed(line)
    assert (args.project, args.env, args.job_id) == ("here", "live", 7)


def test_a_project_may_be_called_like_a_command() -> None:
    assert parsed("--project run status").command == "status"


def test_project_and_environment_reach_a_nested_command() -> None:
    args = parsed("db --env live backup monday.db --project here")
    assert (args.verb, args.project, args.env, args.file) == (
        "backup",
        "here",
        "live",
        Path("monday.db"),
    )


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("statsu", "there is no command 'statsu'", "did you mean 'status'?"),
        ("statsu --json", "there is no command 'statsu'", "did you mean 'status'?"),
        ("db chek", "there is no command 'chek'", "did you mean 'check'?"),
        ("jobs --stat queued", "`penstock jobs` has no option '--stat'", "did you mean '--state'?"),
        ("runs --sorce=a", "`penstock runs` has no option '--sorce'", "did you mean '--source'?"),
        ("--qqq status", "`penstock` has no option '--qqq'", GLOBAL),
        ("records a --format xml", "--format can't be 'xml'", "known: csv, jsonl, table"),
        ("run a --kind ful", "--kind can't be 'ful'", "did you mean 'full'?"),
        ("jobs twelve", "JOB: 'twelve' is not a number from 1 up", HELP.format("jobs")),
        ("runs 0", "RUN: '0' is not a number from 1 up", HELP.format("runs")),
        (f"runs {10**20}", f"RUN: '{10**20}' is not a number from 1 up", HELP.format("runs")),
        ("runs --limit -3", "--limit: '-3' is not a number from 1 up", HELP.format("runs")),
        ("pause", "`penstock pause` needs SOURCE|RUN", HELP.format("pause")),
        ("db", "`penstock db` needs VERB", HELP.format("db")),
        ("status now", "`penstock status` does not know what to do with 'now'", HELP.format("status")),
        ("jobs --state", "--state: expected one argument", HELP.format("jobs")),
    ],
)  # fmt: skip
def test_a_wrong_line_is_told_with_the_nearest_right_one(
    line: str, message: str, hint: str
) -> None:
    assert refused(line) == (message, hint)


def test_an_abbreviated_option_is_not_guessed() -> None:
    message, hint = refused("up --until")
    assert message == "`penstock up` has no option '--until'"
    assert hint == "did you mean '--until-idle'?"


def test_without_a_command_the_help_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == exits.USAGE
    told = capsys.readouterr()
    assert told.out == ""
    assert "penstock demo" in told.err


@pytest.mark.parametrize("command", ["init", "demo"])
def test_a_command_that_makes_a_project_takes_none(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--project", "here"]) == exits.USAGE
    assert "it takes no --project" in capsys.readouterr().err


# The page about it.


def documented_lines() -> list[str]:
    """The lines of every block that names no language: those are commands."""
    found, fence = [], None
    for line in DOCS.splitlines():
        if line.startswith("```"):
            fence = line if fence is None else None
        elif fence == "```":
            found.append(line)
    return found


@pytest.mark.parametrize("line", documented_lines())
def test_every_documented_line_can_be_typed(line: str) -> None:
    program, *words = shlex.split(line)
    assert program == "penstock"
    if "--help" not in words:
        assert parsed(shlex.join(words)).run


def test_every_command_is_documented_with_an_example() -> None:
    lines = documented_lines()
    for command in COMMANDS:
        assert command == "db" or any(line.startswith(f"penstock {command}") for line in lines)


def test_the_documented_exit_codes_are_those_of_the_code() -> None:
    table = DOCS.partition("## Exit codes")[2].partition("|---|---|\n")[2].partition("\n\n")[0]
    rows = (line.strip("|").split("|", 1) for line in table.splitlines())
    assert {int(code): meaning.strip() for code, meaning in rows} == exits.MEANINGS


def test_the_worst_run_decides_the_exit_code() -> None:
    assert exits.of_runs(["completed", "completed"]) == exits.DONE
    assert exits.of_runs(["completed", "partial"]) == exits.PARTIAL
    assert exits.of_runs(["partial", "failed", "completed"]) == exits.FAILED
    assert exits.of_runs(["cancelled"]) == exits.FAILED


def test_only_the_command_that_is_used_is_registered() -> None:
    actions = parser_for(["status"])._subparsers
    assert actions is not None
    [commands] = actions._group_actions
    assert isinstance(commands, argparse._SubParsersAction)
    assert list(commands.choices) == ["status"]
    assert isinstance(commands.choices["status"], Parser)
