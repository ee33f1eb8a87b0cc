"""`penstock sites`: sites that agents have learned, and the proposals that a person decides."""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.confirmation import add_yes, confirm
from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_private,
    add_reason,
    add_verb,
)
from penstock.cli.render.tables import column, key_column, text, whole
from penstock.cli.render.wording import shortened

if TYPE_CHECKING:
    from penstock.app.views.sites import DecisionView, ProposalView, SiteView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Sites whose structure agents have learned (docs/agents.md): the version of each schema, the validator's score,
and what keeps records from being extracted by it. Agents propose changes that they must not make on their
own; a person approves or rejects each. While a proposal is open, extraction of the site is refused."""
EXAMPLES = """\
  penstock sites
  penstock sites show acme.com
  penstock sites proposals
  penstock sites proposals acme.com --state all
  penstock sites approve acme.com 1f0c22ab --reason "the badges are no photos"
  penstock sites reject acme.com 1f0c22ab --reason "they are photos of the item" """
LIST = "List the sites. The same as `penstock sites`."
SHOW = (
    "Show the schema of one site: page types, fields with selectors, images, notes and proposals."
)
PROPOSALS = (
    "List proposals, the most urgent first: those that wait for a decision, of all sites or of one."
)
PROPOSAL = "Show one proposal: what speaks for it, with pages and selectors, and what it changes."
APPROVE = """\
Approve a proposal: show what it changes, ask, and change the schema of the site. The new version is trusted
when the validator has confirmed it."""
REJECT = "Reject a proposal: it is closed, and the schema stays as it is."
COLUMNS = (
    *(key_column("domain"), column("type", 3), whole("version", 2), whole("score", 4)),
    *(whole("state"), whole("open proposals", 5), text("why", 1)),
)
PROPOSAL_COLUMNS = (
    *(key_column("domain"), whole("proposal"), whole("kind"), whole("state", 4)),
    *(column("proposed", 3), text("what", 1)),
)
STATES = ("open", "approved", "rejected", "outdated", "all")
SHOWN = 50
LONGEST = 100


def register(commands: Commands) -> None:
    parser = add_command(commands, "sites", DESCRIPTION, EXAMPLES)
    _add_listing(parser)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    _add_listing(add_verb(verbs, "list", "the sites", LIST, "  penstock sites list --json"))
    showing = add_verb(verbs, "show", "the schema of one", SHOW, "  penstock sites show acme.com")
    _add_domain(showing)
    add_private(showing)
    add_json(showing)
    showing.set_defaults(run=show)
    listing = add_verb(
        verbs,
        "proposals",
        "what waits for a decision",
        PROPOSALS,
        "  penstock sites proposals acme.com --state all",
    )
    listing.add_argument("domain", nargs="?", metavar="DOMAIN", help="only about this site")
    listing.add_argument("--state", choices=STATES, default="open", help="only those in one state")
    add_limit(listing, SHOWN, "proposals")
    add_private(listing)
    add_json(listing)
    listing.set_defaults(run=show_proposals)
    one = add_verb(
        verbs, "proposal", "show one", PROPOSAL, "  penstock sites proposal acme.com 1f0c22ab"
    )
    _add_proposal(one)
    add_private(one)
    add_json(one)
    one.set_defaults(run=show_proposal)
    approving = add_verb(
        verbs, "approve", "change the schema", APPROVE, "  penstock sites approve acme.com 1f0c22ab"
    )
    _add_act(approving)
    add_yes(approving)
    approving.set_defaults(run=approve)
    rejecting = add_verb(
        verbs, "reject", "close a proposal", REJECT, "  penstock sites reject acme.com 1f0c22ab"
    )
    _add_act(rejecting)
    rejecting.set_defaults(run=reject)


def _add_listing(parser: argparse.ArgumentParser) -> None:
    add_private(parser)
    add_json(parser)
    parser.set_defaults(run=show_list)


def _add_domain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("domain", metavar="DOMAIN", help="the site, as penstock sites shows it")


def _add_proposal(parser: argparse.ArgumentParser) -> None:
    _add_domain(parser)
    parser.add_argument("proposal", metavar="PROPOSAL", help="the proposal, as the list shows it")


def _add_act(parser: argparse.ArgumentParser) -> None:
    _add_proposal(parser)
    parser.add_argument("--dry-run", action="store_true", help="only print what would change")
    add_reason(parser)
    add_json(parser)


def show_list(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        rows = list(project.sites.each())
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_line(row) for row in rows))
    else:
        args.out.line("No sites: agents have learned none (docs/agents.md).")
    return exits.DONE


def _line(row: SiteView) -> tuple[object, ...]:
    return (
        *(row.domain, row.site_type or "", row.version, "" if row.score is None else row.score),
        *("trusted" if row.is_trusted else "not trusted", row.open_proposals or ""),
        shortened("; ".join(row.doubts or ()), LONGEST),
    )


def show(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        site = project.sites.get(args.domain)
    if args.json:
        args.out.json(site.as_json())
        return exits.DONE
    state = "trusted" if site.is_trusted else f"not trusted: {'; '.join(site.doubts or ())}"
    args.out.fields([("domain", site.domain), ("version", site.version), ("state", state)])
    args.out.line()
    for each in _pretty(site.data):
        args.out.line(each)
    return exits.DONE


def _pretty(value: object) -> list[str]:
    return json.dumps(value, indent=2, ensure_ascii=False).splitlines()


def show_proposals(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.sites.each_proposal(args.domain, state=args.state, limit=args.limit)
        rows = list(found)
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(PROPOSAL_COLUMNS, (_proposal_line(row) for row in rows))
        if args.state == "open":
            args.out.note("look at one: penstock sites proposal DOMAIN PROPOSAL")
    else:
        args.out.line("No open proposals." if args.state == "open" else "No such proposals.")
    return exits.DONE


def _proposal_line(row: ProposalView) -> tuple[object, ...]:
    what = shortened(row.name, LONGEST)
    return (row.domain, row.id, row.kind, row.state, row.proposed_at, what)


def show_proposal(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.sites.proposal(args.domain, args.proposal)
    if args.json:
        args.out.json(found.as_json())
        return exits.DONE
    _tell(args.out, found)
    if found.state == "open":
        args.out.line()
        for verb in ("reject",) if found.is_outdated else ("approve", "reject"):
            args.out.line(f"{verb} it:  penstock sites {verb} {found.domain} {found.id}")
    return exits.DONE


def _tell(out: Output, found: ProposalView) -> None:
    by = f" by {found.decided_by}, {found.decided_at}" if found.decided_by else ""
    out.fields(
        [
            ("proposal", f"{found.id} ({found.kind})"),
            ("site", found.domain),
            ("state", f"{found.state}{by}"),
            ("reason", found.reason or ""),
            ("what", found.name),
            ("about", found.description),
            ("proposed", found.proposed_at),
            ("out of date", "the schema has changed since" if found.is_outdated else ""),
        ]
    )
    for title, value in (("what speaks for it", found.justification), ("changes", found.change)):
        if value:
            out.line()
            out.line(f"{title}:")
            for each in _pretty(value):
                out.line(f"  {each}")


def approve(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        act = partial(project.sites.approve, args.domain, args.proposal, reason=args.reason)
        seen = act(dry_run=True)
        if not args.dry_run:
            if not args.json and not args.yes:
                _tell(args.out, project.sites.proposal(args.domain, args.proposal))
                args.out.line()
            confirm(args, f"{_preview(seen)}. Approve?")
            seen = act()
    return _told(args, seen)


def reject(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        seen = project.sites.reject(
            args.domain, args.proposal, dry_run=args.dry_run, reason=args.reason
        )
    return _told(args, seen)


def _preview(seen: DecisionView) -> str:
    return f"{', '.join(seen.changed)} of {seen.domain} would change, as version {seen.version}"


def _told(args: argparse.Namespace, seen: DecisionView) -> int:
    if args.json:
        args.out.json(seen.as_json())
    elif seen.state == "rejected":
        verb = "is" if seen.is_done else "would be"
        args.out.line(f"proposal {seen.proposal} {verb} rejected; the schema stays as it is")
    elif seen.is_done:
        args.out.line(
            f"proposal {seen.proposal} is approved: {seen.domain}, version {seen.version}"
        )
        args.out.note("extraction continues when the validator has confirmed it")
    else:
        args.out.line(_preview(seen))
    return exits.DONE
