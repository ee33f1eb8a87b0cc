"""The entry: read the words, run the command, turn whatever happens into a line and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from penstock.cli import exits
from penstock.cli.command_list import GROUPS, LISTED
from penstock.cli.parser import Parser
from penstock.cli.remedies import hint_of
from penstock.cli.render.output import Output
from penstock.errors import ConfigError, PenstockError, UsageError
from penstock.journal.origin import CLI, acting_from
from penstock.version import __version__

# What a command makes while it loads stays: looking for cycles in it costs an eighth of that time by default.
GC_THRESHOLDS = (50_000, 20, 20)
WITHOUT_PROJECT = ("init", "demo")
CELL = "PENSTOCK_CELL"
EXAMPLES = """\
examples:
  penstock demo              see it work in a minute
  penstock init shop-watch   create your own project
  penstock run acme.com      run a source in the foreground
  penstock status            what is going on
  penstock help run          everything about one command

Exit codes: 0 done, 2 usage, 3 partial, 4 failed, 5 database, 6 already running, 7 refused,
130 interrupted. PENSTOCK_DEBUG=1 shows tracebacks.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and answer with its exit code; no exception leaves this function."""
    gc.set_threshold(*GC_THRESHOLDS)
    out = Output(_stream(sys.stdout), _stream(sys.stderr))
    try:
        with acting_from(CLI):
            code = _command(list(sys.argv[1:] if argv is None else argv), out)
        out.stdout.flush()
    except BrokenPipeError:
        _abandon(out.stdout)  # Whoever was reading has read enough.
        return exits.DONE
    except BaseException as error:
        code = _told(error, out)
        try:
            out.stdout.flush()
        except OSError:
            _abandon(out.stdout)
    return code


def parser_for(argv: Sequence[str]) -> Parser:
    """The parser, with the commands that occur in these words; with none of them if it is to show help."""
    parser = Parser(
        prog="penstock",
        description="Ingest data from many sources into clean, versioned records.",
        epilog=EXAMPLES,
    )
    parser.known = tuple(LISTED)
    parser.groups = {
        title: {name: command.summary for name, command in group.items()}
        for title, group in GROUPS.items()
    }
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=Parser
    )
    # Only what is needed is imported: a command that looks must answer at once, and so must help.
    said = [] if argv[:1] in (["-h"], ["--help"]) else [word for word in argv if word in LISTED]
    for module in dict.fromkeys(LISTED[word].module for word in said):
        importlib.import_module(f"penstock.cli.commands.{module}").register(commands)
    return parser


def _command(argv: list[str], out: Output) -> int:
    parser = parser_for(argv)
    try:
        args = parser.parse_args(
            argv, argparse.Namespace(project=None, env=None, cell=None, out=out)
        )
    except SystemExit:  # argparse has shown --help or --version
        return exits.DONE
    if args.command is None:
        parser.print_help(out.stderr)
        return exits.USAGE
    if args.command in WITHOUT_PROJECT and args.project is not None:
        raise UsageError(f"`penstock {args.command}` makes a project; it takes no --project")
    # What the project's own code prints must not end up in the middle of our JSON.
    with contextlib.redirect_stdout(out.stderr), in_cell(args.cell):
        code: int = args.run(args)
    return code


@contextlib.contextmanager
def in_cell(name: str | None) -> Iterator[None]:
    """While this lasts, it is this cell that is meant, here and in processes that are started."""
    before = os.environ.get(CELL)
    if name is not None:
        os.environ[CELL] = name
    try:
        yield
    finally:
        if name is not None:
            os.environ.pop(CELL)
            if before is not None:
                os.environ[CELL] = before


def _stream(stream: TextIO | None) -> TextIO:
    """A stream that can be written whatever becomes of it: a shell may have closed it."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        # A terminal that can't show a character must not stop the command.
        stream.reconfigure(errors="backslashreplace")
    return stream


def _abandon(stream: TextIO) -> None:
    """Let what is left be lost quietly: Python would try once more at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _told(error: BaseException, out: Output) -> int:
    if os.environ.get("PENSTOCK_DEBUG"):
        out.stderr.write(_traceback(error, out))
    if isinstance(error, PenstockError):
        _tell_error(error, out)
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        out.error("interrupted")
        return exits.INTERRUPTED
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        # What is not UTF-8 on the command line or in a file's name comes as this.
        shown = error.object[error.start : error.end].encode("utf-8", "backslashreplace").decode()
        out.error(f"a name or text is not UTF-8: {shown}")
        return exits.USAGE
    if isinstance(error, SystemExit):
        out.error(f"the project's own code called sys.exit({error.code!r})")
        return exits.USAGE
    if isinstance(error, (OSError, MemoryError)):
        out.error(str(error) or type(error).__name__, "PENSTOCK_DEBUG=1 shows where")
        return exits.BUG
    out.secrets |= _probable_secrets()
    out.error(f"{type(error).__name__}: {error}", f"this is a bug; {_kept(error, out)}")
    return exits.BUG


def _tell_error(error: PenstockError, out: Output) -> None:
    mistakes = error.mistakes if isinstance(error, ConfigError) else ()
    first, _, _ = error.message.partition("\n") if mistakes else (error.message, "", "")
    out.error(first, hint_of(error))
    for each in mistakes:
        out.note(f"  {each}")


def _probable_secrets() -> frozenset[str]:
    """What the environment holds under secret names: a bug may come before the settings are known."""
    from penstock.app.secrets import environment_secrets

    return environment_secrets()


def _kept(error: BaseException, out: Output) -> str:
    """Write the traceback where a report can be made from it; only its owner can read it."""
    import tempfile

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="penstock-crash-", suffix=".log", delete=False, encoding="utf-8"
        ) as file:
            file.write(f"penstock {__version__}, Python {sys.version}\n{_traceback(error, out)}")
    except OSError as failure:
        return f"PENSTOCK_DEBUG=1 shows its traceback (it could not be written: {failure})"
    return f"its traceback is in {file.name}"


def _traceback(error: BaseException, out: Output) -> str:
    import traceback

    out.secrets |= _probable_secrets()
    return out.masked("".join(traceback.format_exception(error)))
