"""`penstock demo`: see it work, in under a minute, with nothing but this machine."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.demo.telling import LineProgress, LiveProgress, Summary
    from penstock.project import Project

EXAMPLES = """\
examples:
  penstock demo                       ingest the demo site into ./penstock-demo
  penstock demo                       once more: nothing is doubled
  penstock demo --dir /tmp/d --json   elsewhere, and the summary as JSON
  penstock demo --keep-serving        keep the site up, to play with it from another terminal
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="ingest a bundled site, good and bad, and see what comes of it",
        description="Make a project folder, serve a small site on loopback and ingest it: a healthy "
        "catalogue, a newspaper's feed, and a bad neighbour that throttles, hangs and breaks.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--dir", type=Path, default=Path("penstock-demo"), help="the folder (./penstock-demo)"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    parser.add_argument(
        "--keep-serving", action="store_true", help="serve the site until Ctrl-C when all is done"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ingest the demo site. A bad neighbour is part of the demo, so its partial run is no failure."""
    from rich.console import Console

    from penstock.demo.folder import known_ports, lay_out
    from penstock.demo.site import Site
    from penstock.engine.foreground import Interrupted

    # With --json, what a person would like to read goes where it can't spoil the object.
    out = sys.stderr if args.json else sys.stdout
    console = Console(file=out, markup=False, highlight=False, soft_wrap=not out.isatty())
    try:
        with Site(known_ports(args.dir)) as site:
            lay_out(args.dir, site.ports)
            console.print(_opening(args.dir, site.ports))
            summary = _ingest(args.dir, console)
            _tell(summary, args, console)
            if args.keep_serving:
                _wait_for_ctrl_c(console)
    except (KeyboardInterrupt, Interrupted):
        console.print("stopped; nothing is lost: run the same command and it goes on from here")
        return exits.INTERRUPTED
    return exits.DONE


def _ingest(folder: Path, console: Console) -> Summary:
    from penstock.demo.site import HOSTS
    from penstock.demo.telling import Summary
    from penstock.engine.foreground import run_foreground
    from penstock.project import Project

    with Project.load(folder) as project:
        before = dict(project.store.collections())
        runs = [_run_of(project, source) for source in HOSTS]
        with _progress(console) as progress:
            reports = run_foreground(project, runs, progress.show, console.print)
        return Summary(reports, before, dict(project.store.collections()))


def _run_of(project: Project, source: str) -> int:
    """The run that an earlier demo had to leave unfinished, or else a new one."""
    left = (run.id for run in project.store.runs(active_only=True) if run.source == source)
    return next(left, None) or project.run(source, actor="demo")


def _progress(console: Console) -> LiveProgress | LineProgress:
    from penstock.demo.telling import LineProgress, LiveProgress

    return LiveProgress(console) if console.is_terminal else LineProgress(console)


def _opening(folder: Path, ports: dict[str, int]) -> str:
    served = ", ".join(f"{host} on port {port}" for host, port in ports.items())
    return f"Project {folder}; serving on 127.0.0.1:\n{served}.\n"


def _tell(summary: Summary, args: argparse.Namespace, console: Console) -> None:
    from penstock.demo.telling import summary_table

    if args.json:
        print(json.dumps({"dir": str(args.dir), **summary.as_json()}))
        return
    console.print(summary_table(summary.reports, summary.totals))
    console.print()
    for sentence in summary.sentences():
        console.print(sentence)
    console.print(_where(args.dir))


def _where(folder: Path) -> str:
    penstock, place = _program(), f"--project {folder}"
    return f"""\
They are in {folder / "penstock.db"}; the pages as they were fetched are in {folder / "snapshots"}.

Three things to try next:
  {penstock} records product {place}
  {penstock} jobs --state quarantined {place}
  {penstock} demo --dir {folder}"""


def _program() -> str:
    """How to call Penstock from the shell this was typed into."""
    script = Path(sys.argv[0])
    if script.name == "__main__.py":
        return f"{sys.executable} -m penstock"
    found = shutil.which(script.name)
    if found and Path(found).resolve() == script.resolve():
        return script.name
    return str(script)


def _wait_for_ctrl_c(console: Console) -> None:
    console.print("\nThe site is still being served; Ctrl-C ends it.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        console.print("The site is closed.")
