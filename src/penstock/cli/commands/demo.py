"""`penstock demo`: see it work, in under a minute, with nothing but this machine."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command
from penstock.cli.render.output import Output
from penstock.errors import Refused

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.app import Project
    from penstock.cli.render.progress import LineProgress, LiveProgress, Summary
    from penstock.demo.site import Site

DESCRIPTION = """\
Make a project folder, serve a small site on loopback and ingest it: a healthy catalogue, a newspaper's
feed, and a source that throttles, hangs and breaks. A tour follows: an incremental run, a circuit breaker, a
budget that stops a run, a replay of new logic on old pages, and `explain`. It takes about a minute. Run it
again in the same folder to see that nothing is duplicated."""
EXAMPLES = """\
  penstock demo                       ingest the demo site into ./penstock-demo, then the tour
  penstock demo --short               without the tour
  penstock demo --dir /tmp/d --json   elsewhere, and the summary as JSON
  penstock demo --keep-serving        keep the site up, to play with it from another terminal
  penstock demo --web                 then serve the dashboard on it, until Ctrl-C"""


# What is ingested at once; the other sources are for the tour.
INGESTED = ("catalogue", "news", "flaky")


def register(commands: Commands) -> None:
    parser = add_command(commands, "demo", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--dir", type=Path, default=Path("penstock-demo"), help="the folder (./penstock-demo)"
    )
    parser.add_argument("--short", action="store_true", help="ingest only, without the tour")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")
    parser.add_argument(
        "--keep-serving", action="store_true", help="when done, serve the site until Ctrl-C"
    )
    parser.add_argument(
        "--web", action="store_true", help="when done, serve the dashboard until Ctrl-C"
    )
    parser.add_argument("--port", type=int, default=0, help="the dashboard's port (a free one)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ingest the demo site. A bad neighbour is part of the demo, so its partial run is no failure."""
    from penstock.demo.folder import known_ports, lay_out
    from penstock.demo.site import Site

    out: Output = args.out
    console = _console(args)
    try:
        with Site(known_ports(args.dir)) as site:
            lay_out(args.dir, site.ports)
            console.print(out.tidy(f"Project {args.dir}; serving on 127.0.0.1:"))
            console.print(_served(site.ports), "\n")
            summary = _ingest(args.dir, console)
            if not args.json:
                _tell(summary, args, console)
            toured = [] if args.short else _tour(args.dir, site, summary, console, args.out)
            if args.json:
                args.out.json({"dir": str(args.dir), **summary.as_json(), "tour": toured})
            else:
                _tell_what_next(args.dir, console, args.out)
            if args.web:
                _serve_dashboard(args, console)
            elif args.keep_serving:
                _wait_for_ctrl_c(console)
    except KeyboardInterrupt:
        console.print("stopped; nothing is lost: run the same command to continue")
        return exits.INTERRUPTED
    return exits.DONE


def _console(args: argparse.Namespace) -> Console:
    from rich.console import Console

    # With --json, what a person would like to read goes where it can't spoil the object.
    stream = args.out.stderr if args.json else args.out.stdout
    is_piped = not stream.isatty()
    return Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=is_piped)


def _served(ports: dict[str, int]) -> str:
    return ", ".join(f"{host} on port {port}" for host, port in ports.items())


def _ingest(folder: Path, console: Console) -> Summary:
    from penstock.app import Project
    from penstock.cli.render.progress import Summary

    with Project.load(folder) as project:
        before = _held(project)
        runs = [_run_of(project, source) for source in INGESTED]
        with _progress(console) as progress:
            reports = project.runs.finish(runs, on_progress=progress.show, tell=console.print)
        return Summary(reports, before, _held(project))


def _held(project: Project) -> dict[str, int]:
    """How many records each collection has."""
    return {each.collection: each.records for each in project.records.collections()}


def _tour(
    folder: Path, site: Site, summary: Summary, console: Console, out: Output
) -> list[dict[str, Any]]:
    """Take the tour, telling it on the way; answers with what was run, for programs."""
    from penstock.demo.tour import Stop, taken

    runs = {each.source: each.run for each in summary.reports}
    toured: list[dict[str, Any]] = []
    for each in taken(folder, site, runs["catalogue"], _broken_job(folder, runs["flaky"])):
        if isinstance(each, Stop):
            console.print(f"\n{each.title}", style="bold")
            console.print(out.tidy(each.text))
            toured.append({"title": each.title, "commands": []})
            continue
        console.print(f"\n$ penstock {' '.join(each.words)}", style="bold", soft_wrap=True)
        for line in each.output.rstrip().splitlines():
            console.print(out.tidy(line), soft_wrap=True)
        typed = {"words": each.words, "exit_code": each.exit_code, "output": each.output}
        toured[-1]["commands"].append(typed)
    return toured


def _broken_job(folder: Path, run_id: int) -> int:
    """A page of this run that never came right."""
    from penstock.app import Project

    with Project.open(folder) as project:
        found = project.jobs.list(run=run_id, states=["quarantined"], limit=1).items
        return found[0].id if found else 1


def _run_of(project: Project, source: str) -> int:
    """The run that an earlier demo had to leave unfinished, or else a new one."""
    from penstock.cli.remedies import command_of

    try:
        begun = project.runs.start(source, awaited=True, actor="demo").run
    except Refused as refused:
        if refused.remedy is None:
            raise
        # The project is not where the operator is.
        command = command_of(refused.remedy).removeprefix("penstock ")
        place = f"--project {shlex.quote(str(project.settings.root))}"
        raise Refused(refused.message, f"{_program()} {command} {place}") from None
    return begun.id if begun is not None else 0


def _progress(console: Console) -> LiveProgress | LineProgress:
    from penstock.cli.render.progress import LineProgress, LiveProgress

    return LiveProgress(console) if console.is_terminal else LineProgress(console)


def _tell(summary: Summary, args: argparse.Namespace, console: Console) -> None:
    from penstock.cli.render.progress import summary_table

    console.print(summary_table(summary.reports, summary.totals), "")
    for line in summary.sentences():
        console.print(args.out.tidy(line))


def _tell_what_next(folder: Path, console: Console, out: Output) -> None:
    console.print()
    for line in _what_next(folder):
        console.print(out.tidy(line))


def _what_next(folder: Path) -> list[str]:
    penstock, place = _program(), shlex.quote(str(folder))
    store, snapshots = folder / "penstock.db", folder / "snapshots"
    return [
        f"They are in {store}, the pages as they were fetched in {snapshots}.",
        "",
        "Three things to try next:",
        f"  {penstock} records product --project {place}",
        f"  {penstock} jobs --state quarantined --project {place}",
        f"  {penstock} demo --dir {place}",
    ]


def _program() -> str:
    """How to call Penstock from the shell this was typed into."""
    script = Path(sys.argv[0])
    if script.name == "__main__.py":
        return f"{sys.executable} -P -m penstock"
    found = shutil.which(script.name)
    if found and Path(found).resolve() == script.resolve():
        return script.name
    return str(script)


def _serve_dashboard(args: argparse.Namespace, console: Console) -> None:
    """The site stays up too: what is retried in the dashboard fetches from it."""
    from penstock.app import Project
    from penstock.cli.commands.web import serve_here

    place = shlex.quote(str(args.dir))
    console.print("\nThe dashboard of this project; Ctrl-C ends it.")
    console.print(f"To work on what you start there: {_program()} up --project {place}")
    with suppress(KeyboardInterrupt), Project.load(args.dir) as project:
        serve_here(project, args.port, console.print)
    console.print("The dashboard and the site are closed.")


def _wait_for_ctrl_c(console: Console) -> None:
    console.print("\nThe site is still being served; Ctrl-C ends it.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        console.print("The site is closed.")
