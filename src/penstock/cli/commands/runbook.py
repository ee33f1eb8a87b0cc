"""`penstock runbook`: what to do about a fault, step by step on live data."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from penstock.cli.confirmation import add_confirm, ask_for_name, confirm
from penstock.cli.parser import Commands, add_command, add_json, add_reason
from penstock.cli.render.runbook import commands_of, tell_result, tell_state, tell_step
from penstock.cli.render.tables import column, key_column
from penstock.cli.render.wording import local_time
from penstock.errors import StoreError, UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.runbooks import (
        ExecutionView,
        RunbookState,
        StepResult,
        StepView,
    )
    from penstock.cli.render.output import Output

DESCRIPTION = """\
What to do about a fault. Without a name, list the runbooks. With a name, show its signals now, the state of
each step and the step that applies. On a terminal it then leads through the steps: each is shown with its
dry run, and you do it, skip it or leave. Every step goes to the journal, with who took it and why. Leave at
any time; the same command continues, for you or for somebody else."""
EXAMPLES = """\
  penstock runbook
  penstock runbook source-broke acme.com
  penstock runbook source-broke acme.com --json
  penstock runbook source-broke acme.com --step stop-requests --dry-run
  penstock runbook source-broke acme.com --step stop-requests --yes --reason "the layout changed"
  penstock runbook source-broke acme.com --skip drop
  penstock runbook database-down
  penstock runbook source-broke acme.com --end --reason "the site is gone for good" """
COLUMNS = (key_column("runbook", least=19), column("for", 0), "title", column("open since", 1))
FOR = {"source": "SOURCE", "any": "[SOURCE]", "project": ""}
LIST = "list"


def register(commands: Commands) -> None:
    parser = add_command(commands, "runbook", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "name", nargs="?", default=LIST, metavar="RUNBOOK", help="the runbook; `list` lists them"
    )
    parser.add_argument("target", nargs="?", metavar="SOURCE", help="the source it is about")
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--step", metavar="STEP", help="take this step: show its dry run, ask, do it")
    act.add_argument("--skip", metavar="STEP", help="leave out this step")
    act.add_argument("--end", action="store_true", help="stop following it; what was done stays")
    parser.add_argument("--dry-run", action="store_true", help="with --step: only its dry run")
    parser.add_argument(
        "--detach", action="store_true", help="only queue what a step starts, do not wait for it"
    )
    add_json(parser)
    add_reason(parser)
    add_confirm(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    if args.dry_run and not args.step:
        raise UsageError("--dry-run is for --step STEP")
    with opened(args) as project:
        if args.name == LIST:
            _list(project, args)
        elif args.step:
            _take(project, args)
        elif args.skip:
            _skip(project, args)
        elif args.end:
            _end(project, args)
        else:
            _show(project, args)
    return 0


def _list(project: Project, args: argparse.Namespace) -> None:
    if args.target or args.step or args.skip or args.end:
        raise UsageError("name the runbook", "penstock runbook lists them")
    views = list(project.runbooks.each())
    if args.json:
        args.out.json_list(view.as_json() for view in views)
        return
    begun = _open_executions(project, args.out)
    opened_at = {
        view.name: ", ".join(
            f"{each.source or 'project'} {local_time(each.started_at)}"
            for each in begun
            if each.runbook == view.name
        )
        for view in views
    }
    args.out.table(
        COLUMNS, ((view.name, FOR[view.scope], view.title, opened_at[view.name]) for view in views)
    )


def _open_executions(project: Project, out: Output) -> list[ExecutionView]:
    """Who follows one now. The list is for whoever has no database, too."""
    try:
        found = project.runbooks.executions().items
    except StoreError as error:
        out.note(f"penstock: {error.message}; see penstock runbook database-down")
        return []
    return [each for each in found if each.ended_at is None]


def _show(project: Project, args: argparse.Namespace) -> None:
    state = project.runbooks.state(args.name, args.target)
    if args.json:
        args.out.json(state.as_json())
        return
    tell_state(args.out, state)
    if sys.stdin.isatty() and args.out.stdout.isatty():
        _follow(project, args, state)
    elif state.next is not None:
        args.out.line()
        args.out.line(f"take it: {_again(args)} --step {state.next}")


def _again(args: argparse.Namespace) -> str:
    return " ".join(["penstock runbook", args.name, *([args.target] if args.target else [])])


def _follow(project: Project, args: argparse.Namespace, state: RunbookState) -> None:
    """Offer the step that applies, again and again, until there is none or the operator leaves."""
    from penstock.app.runbooks import verb_of_step

    out: Output = args.out
    while state.next is not None:
        step = state.step(state.next)
        out.line()
        tell_step(out, state, step)
        seen = project.runbooks.do(args.name, step.name, args.target, dry_run=True)
        if step.kind == "act":
            out.line(f"   dry run: {seen.text}")
        said = _ask(out, "[d]o it, [s]kip it, [r]ead the signals again, [q]uit? ")
        if said == "d":
            ask_for_name(args, "", verb_of_step(args.name, step.name))
            reason = args.reason or _ask(out, "reason: ", is_free=True)
            done = project.runbooks.do(args.name, step.name, args.target, reason=reason)
            tell_result(out, done)
            _work(project, args, done)
        elif said == "s":
            reason = args.reason or _ask(out, "reason: ", is_free=True)
            project.runbooks.skip(args.name, step.name, args.target, reason=reason)
        elif said != "r":
            out.line(f"to continue: {_again(args)}")
            return
        state = project.runbooks.state(args.name, args.target)
        if state.execution is None and said == "d":
            return
        if said == "r":
            tell_state(out, state)
    _tell_end(out, args, state)


def _tell_end(out: Output, args: argparse.Namespace, state: RunbookState) -> None:
    if not state.is_raised:
        return
    out.line()
    out.line("No step applies, and the fault is still there.")
    out.line(f"Take a step again: {_again(args)} --step STEP; or give up: {_again(args)} --end")


def _ask(out: Output, question: str, is_free: bool = False) -> str:
    out.stderr.write(question)
    out.stderr.flush()
    said = sys.stdin.readline()
    if not said:  # the terminal is gone
        return "" if is_free else "q"
    return said.strip() if is_free else said.strip().lower()[:1]


def _take(project: Project, args: argparse.Namespace) -> None:
    out: Output = args.out
    seen = project.runbooks.do(args.name, args.step, args.target, dry_run=True)
    if not args.json:
        state = project.runbooks.state(args.name, args.target)
        step = state.step(args.step)
        tell_step(out, state, step)
        if step.kind == "act":
            out.line(f"   dry run: {seen.text}")
    if not args.dry_run:
        from penstock.app.runbooks import verb_of_step

        confirm(args, _question(project, args, seen), verb_of_step(args.name, args.step))
        seen = project.runbooks.do(args.name, args.step, args.target, reason=args.reason)
        if not args.json:
            tell_result(out, seen)
        _work(project, args, seen)
    if args.json:
        out.json({**seen.as_json(), "command": commands_of(_step(project, args))})


def _step(project: Project, args: argparse.Namespace) -> StepView:
    return project.runbooks.state(args.name, args.target).step(args.step)


def _question(project: Project, args: argparse.Namespace, seen: StepResult) -> str:
    is_act = _step(project, args).kind == "act"
    return f"Do it: {seen.text}?" if is_act else f"Record that this is done: {seen.text}?"


def _work(project: Project, args: argparse.Namespace, done: StepResult) -> None:
    """Work on the run that a step has started, or wait for whoever does."""
    from penstock.app.run_performer import Interrupted
    from penstock.cli.commands.service import showing_progress

    if done.run_id is None:
        return
    if args.detach:
        args.out.note(f"run {done.run_id} is queued; workers do it")
        return
    try:
        with showing_progress(args.out) as (show, tell):
            project.runs.finish([done.run_id], on_progress=show, tell=tell)
    except Interrupted:
        args.out.note(f"interrupted; nothing is lost. To continue: {_again(args)}")


def _skip(project: Project, args: argparse.Namespace) -> None:
    done = project.runbooks.skip(args.name, args.skip, args.target, reason=args.reason)
    if args.json:
        args.out.json(done.as_json())
    else:
        args.out.line(f"{args.skip} is skipped")


def _end(project: Project, args: argparse.Namespace) -> None:
    ended = project.runbooks.end(args.name, args.target, reason=args.reason)
    if args.json:
        args.out.json(ended.as_json())
    else:
        args.out.line(f"{args.name} is no longer followed; what its steps did stays")
