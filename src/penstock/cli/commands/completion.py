"""`penstock completion`: let the shell complete commands, options and names of the project."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.app.completion import Suggestion, Suggestions
from penstock.cli.parser import Commands, add_command
from penstock.cli.render.output import Output

DESCRIPTION = """\
Print a script that makes Tab complete commands, options and names: sources, runs, quarantined jobs, states,
stages, causes, kinds of events, collections, record keys, partitions of checkpoints, hosts with a breaker.
The database is only read, and your code is not imported."""
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
    local -a lines found shown layout
    lines=(${(f)"$(penstock completion zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)"})
    found=("${(@)lines%%$'\\t'*}")
    shown=("${(@)lines/$'\\t'/  -- }")
    if [[ "$lines" == *$'\t'* ]]; then layout=(-l); fi
    if (( $#found )); then compadd -V penstock $layout -d shown -a found; else _files; fi
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
complete -c penstock -f -k -a "(__penstock_complete)"
""",
}
# Where bash cuts a word in two: it completes only what stands behind the last of them.
BREAKS = ":="
# Where the same name in the usage means something else than in other commands.
OTHER_NOUNS = {("penstock events", "KIND"): "EVENT"}
NOT_PLAIN = re.compile(r"([^\w@%+=:,./-])")


def register(commands: Commands) -> None:
    parser = add_command(commands, "completion", DESCRIPTION, EXAMPLES)
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    out: Output = args.out
    if not args.words:
        out.stdout.write(SCRIPTS[args.shell])
        return 0
    words = _joined(args.words) if args.shell == "bash" else args.words
    for found in completions(words, args.project, args.env):
        out.stdout.write(_line(found, words[-1], args.shell) + "\n")
    return 0


def completions(
    words: Sequence[str], project: str | None = None, environment: str | None = None
) -> list[Suggestion]:
    """What the last word could become."""
    *before, prefix = words
    found = [
        each
        for each in _candidates(before, prefix, project, environment)
        if each.word.startswith(prefix)
    ]
    return list(dict.fromkeys(found))


def _joined(words: Sequence[str]) -> list[str]:
    """The words as they were typed: bash hands over `host:80` as three."""
    joined: list[str] = []
    is_open = False
    for at, word in enumerate(words):
        is_break = bool(word) and not word.strip(BREAKS)
        if joined and (is_break or (is_open and (word or at == len(words) - 1))):
            joined[-1] += word
        else:
            joined.append(word)
        is_open = is_break
    return [re.sub(r"\\(.)", r"\1", word) for word in joined]


def _line(found: Suggestion, prefix: str, shell: str) -> str:
    if shell != "bash":
        return f"{found.word}\t{found.about}" if found.about else found.word
    known = max(prefix.rfind(each) for each in BREAKS) + 1
    return NOT_PLAIN.sub(r"\\\1", found.word[known:])


@dataclass(slots=True)
class _Typed:
    """What stands before the word to complete, as the parser of its command understands it."""

    parser: argparse.ArgumentParser
    # By their dest: what else the command was given.
    given: dict[str, str] = field(default_factory=dict)
    # What the word is for; None where nothing more is expected.
    wanted: argparse.Action | None = None

    @classmethod
    def read(cls, words: Iterable[str], parser: argparse.ArgumentParser) -> _Typed:
        typed = cls(parser)
        option: argparse.Action | None = None
        positionals = 0
        for word in words:
            name, equals, value = word.partition("=")
            if option is not None:
                typed.given[option.dest], option = word, None
            elif word in (verbs := _verbs(typed.parser)):
                typed.parser, positionals = verbs[word], 0
            elif (action := typed.parser._option_string_actions.get(name)) is not None:
                if equals:
                    typed.given[action.dest] = value
                elif action.nargs != 0:
                    option = action
            elif (action := _positional(typed.parser, positionals)) is not None:
                typed.given[action.dest] = word
                positionals += 1
        typed.wanted = option or _positional(typed.parser, positionals)
        return typed


def _candidates(
    before: list[str], prefix: str, project: str | None, environment: str | None
) -> Iterable[Suggestion]:
    from penstock.cli.command_list import LISTED
    from penstock.cli.entry import parser_for

    command = next((each for each in before if each in LISTED), None)
    if command is None:
        return map(Suggestion, sorted((*LISTED, "--help", "--version", "--project", "--env")))
    typed = _Typed.read(before, parser_for([command]))
    names = Suggestions(typed.given.get("project", project), typed.given.get("env", environment))
    options = typed.parser._option_string_actions
    if typed.wanted is not None and typed.wanted.option_strings:
        return _values(typed.wanted, prefix, names, typed)
    option, equals, value = prefix.partition("=")
    if equals and option in options:
        found = _values(options[option], value, names, typed)
        return [Suggestion(f"{option}={each.word}", each.about) for each in found]
    if prefix.startswith("-"):
        return map(Suggestion, sorted(options))
    if typed.wanted is None:
        return ()
    return _values(typed.wanted, prefix, names, typed)


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for each in parser._actions:
        if isinstance(each, argparse._SubParsersAction):
            return dict(each.choices)
    return {}


def _positional(parser: argparse.ArgumentParser, number: int) -> argparse.Action | None:
    """What the word after so many others is; the last one may take any number of them."""
    found = [each for each in parser._actions if not each.option_strings]
    if number < len(found):
        return found[number]
    return found[-1] if found and found[-1].nargs in ("*", "+") else None


def _values(
    action: argparse.Action, prefix: str, names: Suggestions, typed: _Typed
) -> Iterable[Suggestion]:
    """The words for what its usage calls by this name; `SOURCE|RUN` is either."""
    if action.choices is not None:
        return [Suggestion(str(each)) for each in sorted(action.choices)]
    said = str(action.metavar)
    nouns = OTHER_NOUNS.get((typed.parser.prog, said), said).split("|")
    return [found for noun in nouns for found in names.of(noun, prefix, typed.given)]
