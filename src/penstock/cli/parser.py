"""How a command line is read: argparse, with our words for what is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from penstock.errors import UsageError, nearest

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_SubParsers = argparse._SubParsersAction
_Line = argparse._SubParsersAction._ChoicesPseudoAction
LARGEST_ID = 2**63 - 1
# Commands and verbs that stop work, or take something away. Whoever mistypes a word is never led to one.
STOPPING = frozenset(
    "breaker cancel checkpoint discard forget hold open pause restore rewind undo".split()
)


class Parser(argparse.ArgumentParser):
    """A parser that takes `--project` and `--env` anywhere and raises UsageError.

    `known` are the words that could have been meant where a command is expected.
    """

    known: Iterable[str] = ()
    # Where help shows commands in groups: their titles, and the commands of each with a line about it.
    groups: Mapping[str, Mapping[str, str]] = {}
    # First words that have a page of their own where a command takes a name there, too: with more words
    # behind them, they are meant.
    verbs: Mapping[str, argparse.ArgumentParser] = {}

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)
        where = self.add_argument_group("project")
        # Suppressed: a default here would overwrite what was said before the command.
        where.add_argument(
            "--project",
            metavar="DIR",
            default=argparse.SUPPRESS,
            help="folder of penstock.yaml (the nearest, here or above)",
        )
        where.add_argument(
            "--env",
            metavar="NAME",
            default=argparse.SUPPRESS,
            help="apply the overlay penstock.NAME.yaml (PENSTOCK_ENV)",
        )
        where.add_argument(
            "--cell",
            metavar="NAME",
            default=argparse.SUPPRESS,
            help="the cell: one of several databases (PENSTOCK_CELL)",
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if args and len(args) > 1 and args[0] in self.verbs:
            return self.verbs[args[0]].parse_known_args(args[1:], namespace)
        # Before anything else is read: the word after a mistyped option would be blamed instead.
        for word in args if args and not self._subparsers else ():
            if word == "--":
                break
            if word.startswith("--") and word.partition("=")[0] not in self._option_string_actions:
                raise self._unknown(word)
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            raise self._unknown(rest[0])
        return found, rest

    def format_help(self) -> str:
        if not self.groups:
            return super().format_help()
        commands = next(each for each in self._actions if isinstance(each, _SubParsers))
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        sections = [
            (title, [_Line(name, (), summary) for name, summary in group.items()])
            for title, group in self.groups.items()
        ]
        options = [(each.title, each._group_actions) for each in self._action_groups]
        for title, actions in (*sections, *options):
            formatter.start_section(title)
            formatter.add_arguments(each for each in actions if each is not commands)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            raise UsageError(f"`{self.prog}` needs {missing}", f"{self.prog} --help has an example")
        raise UsageError(message.removeprefix("argument "), f"{self.prog} --help has an example")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            known = self.known or action.choices
            hint = _safe_suggestion(str(value), known, self.prog)
            raise UsageError(f"there is no command {value!r}", hint)
        name = "/".join(action.option_strings) or action.metavar
        raise UsageError(
            f"{name} can't be {value!r}", nearest(str(value), map(str, action.choices))
        )

    def _unknown(self, word: str) -> UsageError:
        if not word.startswith("-"):
            return UsageError(
                f"`{self.prog}` does not know what to do with {word!r}",
                f"{self.prog} --help has an example",
            )
        option = word.partition("=")[0]
        return UsageError(
            f"`{self.prog}` has no option {option!r}", nearest(option, self._option_string_actions)
        )


def _safe_suggestion(word: str, known: Iterable[str], prog: str) -> str:
    """The command that was probably meant, unless that would stop or remove something."""
    hint = nearest(word, known)
    if any(hint == f"did you mean {each!r}?" for each in STOPPING):
        return f"{prog} --help lists the commands"
    return hint


def add_command(
    commands: Commands, name: str, description: str, examples: str
) -> argparse.ArgumentParser:
    """A command with its page of help; every one has an example. Its summary is in the list of commands."""
    return commands.add_parser(name, description=description, epilog=f"examples:\n{examples}")


def add_verb(
    verbs: Commands, name: str, summary: str, description: str, examples: str
) -> argparse.ArgumentParser:
    """A command's own command, such as `list` of `quarantine list`."""
    return verbs.add_parser(
        name, help=summary, description=description, epilog=f"examples:\n{examples}"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_private(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--include-private", action="store_true", help="show the content of private sources too"
    )


def add_limit(parser: argparse.ArgumentParser, default: int | None, noun: str) -> None:
    usual = "all" if default is None else str(default)
    parser.add_argument(
        "--limit",
        type=whole_number,
        default=default,
        metavar="N",
        help=f"at most N {noun} ({usual})",
    )


def add_reason(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="", metavar="TEXT", help="reason, kept in the journal")


def whole_number(text: str) -> int:
    """A number as runs and jobs have them."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= LARGEST_ID:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return number


def one_of(noun: str, known: Sequence[str], text: str) -> str:
    """The text, if it is a known word; otherwise an error that names the nearest one."""
    if text not in known:
        raise UsageError(f"there is no {noun} {text!r}", nearest(text, known))
    return text
