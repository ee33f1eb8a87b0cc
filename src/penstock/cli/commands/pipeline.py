"""`penstock pipeline graph`: the steps of a source or of a profile, and what gates what."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json, add_verb
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.step_graphs import StepGraphView
    from penstock.cli.render.output import Output

ABOUT = "Show what pipelines are made of."
EXAMPLES = """\
  penstock pipeline graph standard
  penstock pipeline graph acme.com --explain
  penstock pipeline graph deep --format svg --output deep.svg"""
GRAPH = """\
The steps of a source of penstock.yaml, or of a profile: of the registry that --registry names, else of the
builder. Each step comes after all that gates it. No database is opened, and of a registry no step is
imported. --explain says why each step is in, and why others are not."""
GRAPH_EXAMPLES = """\
  penstock pipeline graph standard
  penstock pipeline graph standard --explain
  penstock pipeline graph mine --registry steps:registry --json
  penstock pipeline graph acme.com --format mermaid
  penstock pipeline graph deep --format svg --output deep.svg"""
FORMATS = ("text", "mermaid", "svg")


def register(commands: Commands) -> None:
    parser = add_command(commands, "pipeline", ABOUT, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    graph = add_verb(verbs, "graph", "the steps, and what gates what", GRAPH, GRAPH_EXAMPLES)
    graph.add_argument("name", metavar="PROFILE|SOURCE", help="a profile, or a source")
    graph.add_argument("--registry", metavar="MODULE:NAME", help="the registry of the profile")
    graph.add_argument(
        "--format", choices=FORMATS, default="text", help="text (default), mermaid or svg"
    )
    graph.add_argument("--explain", action="store_true", help="why each step is in, or not")
    graph.add_argument("--output", type=Path, metavar="FILE", help="write it to a file")
    add_json(graph)
    graph.set_defaults(run=show)


def show(args: argparse.Namespace) -> int:
    from penstock.app.step_graphs import graph_named

    project = _project(args)
    try:
        graph = graph_named(args.name, project, args.registry)
    finally:
        if project is not None:
            project.close()
    if (args.format == "text" and args.output is None) or args.json:
        return show_graph(graph, args)
    _draw(graph, args)
    return exits.DONE


def show_graph(graph: StepGraphView, args: argparse.Namespace) -> int:
    """The graph as a table, or as JSON."""
    if args.json:
        args.out.json(graph.as_json())
    else:
        _tell(graph, args.explain, args.out)
    return exits.DONE


def _project(args: argparse.Namespace) -> Project | None:
    """The project here, if there is one; a profile of the builder needs none."""
    from penstock.app.entry import open_project

    try:
        return open_project(args.project, args.env)
    except UsageError as error:
        if error.code == "no_project" and args.project is None:
            return None
        raise


def _tell(graph: StepGraphView, explains: bool, out: Output) -> None:
    columns = ["step", "phase", "after", "gates", *(["why"] if explains else [])]
    rows = [
        (s.name, s.phase, ", ".join(s.after), ", ".join(s.gates), *([s.why] if explains else []))
        for s in graph.steps
    ]
    out.table(columns, rows)
    if explains and graph.left_out:
        out.line()
        out.table(("left out", "why"), list(graph.left_out.items()))


def _draw(graph: StepGraphView, args: argparse.Namespace) -> None:
    from penstock.cli.render.step_graph import mermaid, svg

    drawn = svg(graph) if args.format == "svg" else mermaid(graph)
    if args.output is None:
        args.out.stdout.write(drawn + "\n")
        return
    try:
        args.output.write_text(drawn + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{args.output} can't be written: {error.strerror}") from None
    args.out.note(f"written to {args.output}")
