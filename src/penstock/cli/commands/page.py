"""`penstock page`: what was fetched, to look at."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json, whole_number
from penstock.cli.render.wording import count, local_time
from penstock.errors import Refused, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.app import Project
    from penstock.app.views.pages import Response, SnapshotView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
The page that a job fetched, or that was fetched last from an address: its status, headers, time and body,
from the snapshot. Nothing is sent. Control characters in the body are shown as escapes; --output writes the
bytes as they are."""
EXAMPLES = """\
  penstock page 345
  penstock page https://acme.com/p/17
  penstock page 345 --output page.html
  penstock page 345 --screenshot --output page.png
  penstock page 345 --headers"""
# On a terminal; a pipe gets everything.
SHOWN_CHARACTERS = 20_000
# Tabs and ends of lines are how text is laid out; everything else that a terminal obeys is shown.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def register(commands: Commands) -> None:
    parser = add_command(commands, "page", DESCRIPTION, EXAMPLES)
    parser.add_argument("target", metavar="JOB|URL", help="a job, or the address of a page")
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write the body to a new file, unchanged, readable by you alone",
    )
    parser.add_argument(
        "--screenshot",
        action="store_true",
        help="the picture of the page in a browser; write it to a file with --output",
    )
    parser.add_argument("--headers", action="store_true", help="leave out the body")
    parser.add_argument(
        "--include-private", action="store_true", help="also a page of a private source"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.app.views.pages import page_view
    from penstock.cli.lookup import opened

    out: Output = args.out
    with opened(args) as project:
        pages = _pages(project, args.target, is_screenshot=args.screenshot)
        response = project.pages.read(pages[0], include_private=args.include_private)
    if args.output is not None:
        _write(Path(args.output), response.body)
    if args.json:
        with_body = not args.headers and args.output is None
        out.json(page_view(pages[0], response, with_body=with_body).as_json())
        return 0
    _tell(out, pages[0], response)
    if args.output is not None:
        out.line(f"{count(len(response.body), 'byte')} written to {args.output}")
    elif not args.headers:
        _tell_body(out, response)
    if len(pages) > 1 and args.target.isdecimal():
        out.note(f"job {args.target} fetched {count(len(pages), 'page')}; this is the last one:")
        for page in pages[1:]:
            out.note(f"  penstock page {page.url}")
    return 0


def _pages(project: Project, target: str, *, is_screenshot: bool) -> Sequence[SnapshotView]:
    """The pages that are meant, the newest first."""
    named = whole_number(target) if target.isdecimal() else target
    found = project.pages.screenshots(named) if is_screenshot else project.pages.list(named)
    if not found:
        raise UsageError(
            f"nothing is kept of {target}",
            "write the address as the job has it: penstock jobs lists keys",
        )
    return found


def _write(path: Path, body: bytes) -> None:
    from penstock.private_files import open_new

    try:
        with open_new(path) as file:
            file.write(body)
    except FileExistsError:
        raise Refused(f"{path} exists already", "choose another --output") from None
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from None


def _tell(out: Output, row: SnapshotView, response: Response) -> None:
    out.fields(
        [
            ("url", row.url),
            ("redirected to", row.final_url),
            ("status", row.status),
            ("fetched", local_time(row.fetched_at)),
            ("job", row.job_id),
            ("run", row.run_id),
            ("snapshot", row.id),
            ("size", count(len(response.body), "byte")),
        ]
    )
    out.line()
    for name, value in row.headers.items():
        out.line(f"{name}: {value}")


def _tell_body(out: Output, response: Response) -> None:
    from penstock.app.views.pages import is_text

    out.line()
    if not is_text(response):
        out.line("The body is not text. Write it to a file: --output FILE")
        return
    text = out.masked(response.text)
    if out.stdout.isatty() and len(text) > SHOWN_CHARACTERS:
        out.note(f"the first {SHOWN_CHARACTERS:,} of {len(text):,} characters; --output writes all")
        text = text[:SHOWN_CHARACTERS]
    out.stdout.write(escaped(text))
    if not text.endswith("\n"):
        out.stdout.write("\n")


def escaped(text: str) -> str:
    """The text with everything that a terminal would obey shown as an escape."""
    return _OBEYED.sub(_escape, text.replace("\r\n", "\n"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
