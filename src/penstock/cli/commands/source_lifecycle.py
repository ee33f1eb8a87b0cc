"""`penstock sources propose|check|approve|trial|activate|retire|…`: how a source comes to be ingested."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.confirmation import add_confirm, add_yes, confirm
from penstock.cli.parser import add_json, add_reason, add_verb, whole_number
from penstock.cli.render.service_log import add_log_format
from penstock.cli.render.tables import whole
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.onboarding import ComplianceView, OnboardingView, TrialView
    from penstock.cli.render.output import Output

PROPOSE = """\
Propose a source: it is kept in the database with its configuration, and nothing of it is fetched. Approval
writes it into penstock.yaml. A retired source can be proposed again."""
OWN = "Name the person or team that is responsible for a source."
CHECK = """\
Read a source's robots.txt and terms now, and note the verdict, the text and its hash. This always works,
whatever else of the source is stopped. --accept-terms accepts the terms as they are; without --terms, those
that the reason names. Exit code 3 if anything is still missing."""
APPROVE = """\
Let a proposed source have trial runs. It needs an owner, a fresh check of robots.txt, and accepted terms. If
it is not in penstock.yaml yet, it is written there; comments and all other lines stay as they are."""
TRIAL = """\
Run a limited part of an approved source: `onboarding.trial_pages` pages and `onboarding.trial_requests`
requests at most. Its records are staged, apart from the records of the project; see them with
`penstock replay RUN --diff`."""
ACTIVATE = """\
Let a source be ingested from now on. A trial run must have ended well; what it came to is shown first. Its
staged records are dropped: the first run saves them."""
RETIRE = """\
Reject a proposal, or retire a source: its unfinished runs are cancelled, and nothing more of it starts. Its
records and history stay."""
HOLD = """\
Stop everything of a source at once, running attempts included, until the hold is released. New work waits."""
RELEASE = "End a legal hold: what was stopped continues."
REPORT = """\
The evidence of a source's onboarding: who proposed and approved it, the checks of robots.txt and terms with
their hashes, trials, the last runs with yield, rejects, quality, failures and latency, drift, and budgets."""

# Columns of the report that are never cut.
WHOLE = ("run", "state", "outcome", "verdict", "hash", "event")
Run = Callable[[argparse.Namespace], int]


def add_lifecycle(verbs: Any) -> None:
    """Every verb of the lifecycle, in the order in which a source goes through them."""
    proposing = _verb(
        verbs, "propose", "propose a source", PROPOSE, propose, "acme.com --connector web"
    )
    proposing.add_argument("--connector", default="", metavar="NAME", help="what reads it")
    proposing.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of its section of penstock.yaml (repeatable)",
    )
    proposing.add_argument("--owner", default="", metavar="NAME", help="who is responsible for it")
    owning = _verb(verbs, "own", "name its owner", OWN, own, "acme.com data-team")
    owning.add_argument("owner", metavar="OWNER", help="a person or a team")
    checking = _verb(verbs, "check", "check robots.txt and terms", CHECK, check, "acme.com")
    checking.add_argument("--terms", default="", metavar="URL", help="address of its terms")
    checking.add_argument("--accept-terms", action="store_true", help="accept them as they are now")
    approving = _verb(verbs, "approve", "allow trial runs", APPROVE, approve, "acme.com")
    approving.add_argument("--owner", default="", metavar="NAME", help="who is responsible for it")
    trying = _verb(verbs, "trial", "start a trial run", TRIAL, trial, "acme.com --pages 10")
    trying.add_argument("--pages", type=whole_number, metavar="N", help="at most N pages")
    trying.add_argument("--detach", action="store_true", help="only queue, do not wait")
    add_log_format(trying)
    add_yes(_verb(verbs, "activate", "ingest it from now on", ACTIVATE, activate, "acme.com"))
    add_confirm(_verb(verbs, "retire", "reject or end it", RETIRE, retire, "acme.com"))
    add_yes(_verb(verbs, "legal-hold", "stop everything of it", HOLD, legal_hold, "acme.com"))
    releasing = _verb(
        verbs, "legal-release", "end a legal hold", RELEASE, legal_release, "acme.com"
    )
    add_confirm(releasing)
    example = "  penstock sources report acme.com --markdown"
    reporting = add_verb(verbs, "report", "the evidence", REPORT, example)
    reporting.add_argument("source", metavar="SOURCE", help="the source")
    reporting.add_argument("--markdown", action="store_true", help="as a Markdown page")
    reporting.add_argument(
        "--text", metavar="HASH", help="print what a check has read, by the beginning of its hash"
    )
    add_json(reporting)
    reporting.set_defaults(run=report)


def _verb(
    verbs: Any, name: str, summary: str, about: str, run: Run, example: str
) -> argparse.ArgumentParser:
    parser = add_verb(verbs, name, summary, about, f"  penstock sources {name} {example}")
    parser.add_argument("source", metavar="SOURCE", help="the source")
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)
    return parser


def propose(args: argparse.Namespace) -> int:
    from penstock.cli.commands.run import param
    from penstock.cli.lookup import opened

    keys = dict(param(each, "--set") for each in args.set)
    if args.connector:
        keys = {"connector": args.connector, **keys}
    with opened(args) as project:
        found = project.sources.propose(
            args.source, keys=keys, owner=args.owner, reason=args.reason
        )
        return _told(project, args, found)


def own(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        return _told(
            project, args, project.sources.own(args.source, args.owner, reason=args.reason)
        )


def check(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        verb = project.sources.accept_terms if args.accept_terms else project.sources.check
        found = verb(args.source, terms=args.terms, reason=args.reason)
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell_compliance(found, args.out)
    return exits.PARTIAL if found.gaps else exits.DONE


def approve(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        was_configured = project.sources.onboarding(args.source).is_configured
        found = project.sources.approve(args.source, owner=args.owner, reason=args.reason)
        if not was_configured and not args.json:
            args.out.note(
                f"{found.source} was written into {project.settings.file.name}; workers that are running "
                "know it after a restart"
            )
        return _told(project, args, found)


def trial(args: argparse.Namespace) -> int:
    from penstock.cli.commands.run import note_going_on, tell_queued, work_on
    from penstock.cli.lookup import opened

    args.draft = False
    with opened(args) as project:
        started = project.sources.trial(args.source, pages=args.pages, reason=args.reason)
        run = started.run
        if run is None:
            return exits.DONE
        if not started.is_new:
            note_going_on(args.out, run)
        if args.detach:
            tell_queued(project, [run], args)
            return exits.DONE
        code = work_on(project, [run.id], args)
        if not args.json:
            found = next(iter(project.sources.trials(started.source)), None)
            _tell_trial(found, args.out)
        return code


def activate(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        before = project.sources.onboarding(args.source)
        if not args.json:
            _tell_trial(next(iter(project.sources.trials(args.source)), None), args.out)
        if before.state == "trial":  # any other is refused below
            confirm(args, f"Ingest {before.source} from now on?")
        found = project.sources.activate(args.source, reason=args.reason)
        return _told(project, args, found)


def retire(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        before = project.sources.onboarding(args.source)
        if before.state != "retired":
            question = f"Retire {before.source} ({before.state}) and cancel its unfinished runs?"
            confirm(args, question, "sources.retire")
        found = project.sources.retire(args.source, reason=args.reason)
        return _told(project, args, found)


def legal_hold(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        confirm(args, f"Stop everything of {args.source}, running attempts included?")
        is_new = project.sources.legal_hold(args.source, reason=args.reason)
        return _told_hold(project, args, is_new, "on legal hold")


def legal_release(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        confirm(args, f"End the legal hold of {args.source}?", "sources.legal_release")
        is_new = project.sources.legal_release(args.source, reason=args.reason)
        return _told_hold(project, args, is_new, "not on legal hold")


def report(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.cli.render.source_report import markdown, sections

    out: Output = args.out
    with opened(args) as project:
        if args.text:
            read = project.sources.checked_text(args.source, args.text)
            out.json(read.as_json()) if args.json else out.line(read.text)
            return exits.DONE
        found = project.sources.report(args.source)
    if args.json:
        out.json(found.as_json())
    elif args.markdown:
        for line in markdown(found).splitlines():
            out.line(line)
    else:
        for title, facts, table in sections(found):
            out.line(f"{title}:" if facts or (table and table[1]) else f"{title}: none")
            out.fields(facts)
            if table is not None and table[1]:
                out.table([whole(each) if each in WHOLE else each for each in table[0]], table[1])
            out.line()
    return exits.DONE


def _told(project: Project, args: argparse.Namespace, found: OnboardingView) -> int:
    from penstock.shell import command_of

    if args.json:
        args.out.json(found.as_json())
        return exits.DONE
    words = "in trial" if found.state == "trial" else found.state
    args.out.line(f"{found.source} is {words}")
    for each in found.compliance_gaps:
        args.out.line(f"  missing: {each}")
    stops = [stop for each in project.outlook([found.source]) for stop in each.stops]
    command = next((command_of(s.remedy) for s in stops if s.name == "compliance"), "")
    following = _NEXT.get(found.state, "").format(found.source)
    if found.compliance_gaps and command:
        args.out.note(f"next: {command}")
    elif following:
        args.out.note(f"next: {following}")
    return exits.DONE


_NEXT = {
    "proposed": "penstock sources check {0}, then penstock sources approve {0}",
    "trial": "penstock sources trial {0}, then penstock sources activate {0}",
}


def _told_hold(project: Project, args: argparse.Namespace, is_new: bool, state: str) -> int:
    if args.json:
        seen = project.sources.compliance(args.source)
        args.out.json({**seen.as_json(), "is_new": is_new})
    else:
        args.out.line(
            f"{args.source} is {state}" if is_new else f"{args.source} was {state} already"
        )
    return exits.DONE


def _tell_compliance(found: ComplianceView, out: Output) -> None:
    latest = {each.subject: each for each in reversed(found.checks)}
    for subject, each in latest.items():
        where = f" {each.url}" if each.url else ""
        detail = f": {each.detail}" if each.detail else ""
        out.line(f"{subject}: {each.verdict.replace('_', ' ')}{where}{detail}")
    for gap in found.gaps:
        out.line(f"missing: {gap}")
    if not found.gaps:
        out.line(f"{found.source} may be fetched")


def _tell_trial(found: TrialView | None, out: Output) -> None:
    if found is None:
        return
    quality = "" if found.quality is None else f", quality {found.quality:.2f}"
    out.line(
        f"trial run {found.run_id} ({found.state}): {count(found.pages, 'page')}, "
        f"{count(found.records, 'record')} staged, {found.rejected} rejected, {found.failed} failed, "
        f"{count(found.requests, 'request')}{quality}"
    )
