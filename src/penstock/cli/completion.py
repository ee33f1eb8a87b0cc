"""`penstock completion`: let the shell complete commands, options and the names of sources."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command
from penstock.errors import PenstockError

DESCRIPTION = """\
Print a script that makes Tab complete commands, options and the names of sources in penstock.yaml. Nothing of
the project is imported or opened for it."""
EXAMPLES = """\
  penstock completion bash > ~/.local/share/bash-completion/completions/penstock
  penstock completion zsh > ~/.zfunc/_penstock
  penstock completion fish > ~/.config/fish/completions/penstock.fish"""
# Each asks this command, with the words so far behind `--`; the last of them is the one to complete. Where it
# knows nothing, the shell completes names of files.
SCRIPTS = {
    "bash": """\
_penstock() {
    mapfile -t COMPREPLY < <(penstock completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _penstock penstock
""",
    "zsh": """\
#compdef penstock
_penstock() {
    local -a found
    found=(${(f)"$(penstock completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -a found; else _files; fi
}
if [ "$funcstack[1]" = "_penstock" ]; then _penstock "$@"; else compdef _penstock penstock; fi
""",
    "fish": """\
function __penstock_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (penstock completion fish -- $words[2..-1] 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c penstock -f -a "(__penstock_complete)"
""",
}
# What stands in for the name of a source, in the usage of a command.
SOURCE = "SOURCE"


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "completion", "let the shell complete commands", DESCRIPTION, EXAMPLES
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    out: Output = args.out
    if not args.words:
        out.stdout.write(SCRIPTS[args.shell])
        return 0
    for found in completions(args.words, args.project):
        out.line(found)
    return 0


def completions(words: Sequence[str], project: str | None = None) -> list[str]:
    """What the last word could become."""
    *before, prefix = words
    return sorted(
        {each for each in _candidates(before, prefix, project) if each.startswith(prefix)}
    )


def _candidates(before: list[str], prefix: str, project: str | None) -> Iterable[str]:
    from penstock.cli.entry import MODULES, parser_for

    place = _said(before, "--project") or project
    environment = _said(before, "--env")
    command = next((each for each in before if each in MODULES), None)
    if command is None:
        return (*MODULES, "--help", "--version", "--project", "--env")
    parser: argparse.ArgumentParser = parser_for([command])
    for word in before:
        parser = _verbs(parser).get(word, parser)
    options = parser._option_string_actions
    asked = options.get(before[-1]) if before else None
    if asked is not None and asked.nargs != 0:
        return _values(asked, place, environment)
    if prefix.startswith("-"):
        return options
    positional = [each for each in parser._actions if not each.option_strings]
    return [word for each in positional for word in _values(each, place, environment)]


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for each in parser._actions:
        if isinstance(each, argparse._SubParsersAction):
            return dict(each.choices)
    return {}


def _values(action: argparse.Action, place: str | None, environment: str | None) -> Iterable[str]:
    if action.choices is not None:
        return [str(each) for each in action.choices]
    if SOURCE in str(action.metavar):
        return _sources(place, environment)
    return ()


def _said(words: Sequence[str], option: str) -> str | None:
    """The value of an option in front of what is completed."""
    for at, word in enumerate(words):
        if word == option and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _sources(place: str | None, environment: str | None) -> list[str]:
    """The names in penstock.yaml; none if it can't be read: Tab is no place for an error."""
    from penstock.settings.names import source_names

    try:
        return source_names(Path(place) if place else None, environment)
    except (PenstockError, OSError):
        return []
