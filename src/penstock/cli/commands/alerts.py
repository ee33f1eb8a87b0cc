"""`penstock alerts`: what is wrong, with its evidence, who takes care of it, and the routes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_private,
    add_reason,
    add_verb,
    whole_number,
)
from penstock.cli.render.tables import key_column, text, whole
from penstock.cli.render.wording import duration, local_time, shortened

if TYPE_CHECKING:
    from penstock.app.alerts import Shown
    from penstock.app.views.alerts import AlertDetail, AlertRouteView, AlertView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Problems with a source or the project, found by rules that compare it with its own history. An alert opens
with its evidence, is sent to the routes under `alerts:` in penstock.yaml, and resolves by itself when its
condition ends. The leading process (`penstock up`, `scheduler` or `run`) evaluates the rules."""
EXAMPLES = """\
  penstock alerts
  penstock alerts show 12
  penstock alerts ack 12 --reason "looking at it"
  penstock alerts snooze 12 --for 2h
  penstock alerts test slack"""
LIST = "Alerts, newest first: unresolved ones, or all. The same as `penstock alerts`."
SHOW = """\
One alert with its evidence: the numbers against the baseline, failing examples with their pages, what
vanished from a page, the first event of the change, the suspected cause, the runbook, and what is safe to do
now."""
ACK = "Acknowledge an alert: you are working on it. It resolves by itself when its condition ends."
SNOOZE = """\
Send no messages about an alert for a while. If its condition still holds after that, its routes get a
reminder."""
SNOOZE_EXAMPLES = """\
  penstock alerts snooze 12 --for 2h
  penstock alerts snooze 12 --until 2026-11-20T08:00Z\
"""
RESOLVE = """\
Close an alert. If its condition still holds, the alert stays closed until the condition ends and returns."""
TEST = """\
Send a test message to a route now, ignoring its condition, quiet hours and digest, and print the receiver's
answer. Without a route, list the routes of penstock.yaml. Exits with 4 if the message was not accepted."""
RULES_OF = """\
What each rule about a source is doing: `watching`, `alert`, `off`, or `silent` while the source has too
little history for a baseline. Without a source, the rules about the project."""
RULES = ("rule", "state", "severity", whole("alert"), text("why", 1, 20))
COLUMNS = (
    *(whole("alert"), whole("severity"), "source", whole("rule"), "state", "since"),
    *(whole("incident", 4), text("what", 1)),
)
ROUTES = (key_column("route"), "kind", text("when"), text("sources", 3), whole("digest", 4))
SHOWN = 50
STATES = ("unresolved", "open", "acknowledged", "resolved", "all")
LONGEST = 110


def register(commands: Commands) -> None:
    parser = add_command(commands, "alerts", DESCRIPTION, EXAMPLES)
    _add_listing(parser)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    listing = add_verb(verbs, "list", "alerts", LIST, "  penstock alerts list --all --json")
    _add_listing(listing)
    showing = add_verb(
        verbs, "show", "one alert with its evidence", SHOW, "  penstock alerts show 12"
    )
    _add_alert(showing, show)
    add_private(showing)
    add_json(showing)
    acking = add_verb(verbs, "ack", "acknowledge one", ACK, "  penstock alerts ack 12")
    _add_act(acking, acknowledge)
    snoozing = add_verb(verbs, "snooze", "mute one for a while", SNOOZE, SNOOZE_EXAMPLES)
    _add_act(snoozing, snooze)
    lasting = snoozing.add_mutually_exclusive_group()
    lasting.add_argument(
        "--for", dest="for_text", default="1h", metavar="TIME", help="how long, as 30m or 2h (1h)"
    )
    lasting.add_argument(
        "--until", metavar="TIME", help="until then, as 2026-11-20 or 2026-11-20T08:00Z"
    )
    resolving = add_verb(verbs, "resolve", "close one", RESOLVE, "  penstock alerts resolve 12")
    _add_act(resolving, resolve)
    ruling = add_verb(
        verbs, "rules", "what each rule is doing", RULES_OF, "  penstock alerts rules acme.com"
    )
    ruling.add_argument("source", nargs="?", metavar="SOURCE", help="key of the source")
    add_json(ruling)
    ruling.set_defaults(run=show_rules)
    testing = add_verb(verbs, "test", "try a route", TEST, "  penstock alerts test slack")
    testing.add_argument("route", nargs="?", metavar="ROUTE", help="name of the route")
    add_reason(testing)
    add_json(testing)
    testing.set_defaults(run=test)


def _add_listing(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="include resolved alerts")
    which.add_argument(
        "--state", type=_state, choices=STATES, default="unresolved", help="only those in one state"
    )
    parser.add_argument("--source", metavar="SOURCE", help="only of this source")
    parser.add_argument("--rule", metavar="RULE", help="only of this rule")
    add_limit(parser, SHOWN, "alerts")
    add_json(parser)
    parser.set_defaults(run=show_list)


def _state(text: str) -> str:
    """`standing` is an older word."""
    return "unresolved" if text == "standing" else text


def _add_alert(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    parser.add_argument("alert", type=whole_number, metavar="ALERT", help="number of the alert")
    parser.set_defaults(run=run)


def _add_act(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    _add_alert(parser, run)
    add_reason(parser)
    add_json(parser)


def show_list(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    state: Shown = "all" if args.all else args.state
    with opened(args) as project:
        about = {"source": args.source, "rule": args.rule, "limit": args.limit}
        rows = list(project.alerts.each(state=state, **about))
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_line(row) for row in rows))
    else:
        args.out.line("No alerts." if state != "unresolved" else "No unresolved alerts.")
    return exits.DONE


def _line(row: AlertView) -> tuple[object, ...]:
    state = "snoozed" if row.snoozed_until is not None else row.state
    return (
        *(row.id, row.severity, row.source or "project", row.rule, state),
        *(local_time(row.opened_at), "" if row.incident == row.id else row.incident),
        shortened(row.summary, LONGEST),
    )


def show_rules(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        rows = project.alerts.rules(args.source)
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    else:
        args.out.table(RULES, ((r.rule, r.state, r.severity, r.alert or "", r.why) for r in rows))
    return exits.DONE


def show(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        alert = project.alerts.get(args.alert)
    if args.json:
        args.out.json(alert.as_json())
        return exits.DONE
    args.out.line(f"{alert.severity}: {alert.source or 'project'}: {alert.summary}")
    args.out.fields(_fields(alert))
    for title, lines in _sections(alert):
        args.out.line()
        args.out.line(f"{title}:")
        for line in lines:
            args.out.line(f"  {line}")
    return exits.DONE


def _fields(alert: AlertDetail) -> Iterator[tuple[str, object]]:
    yield "alert", f"{alert.id} ({alert.rule}), {alert.state}"
    yield "open since", local_time(alert.opened_at)
    if alert.acknowledged_at is not None:
        yield "acknowledged", local_time(alert.acknowledged_at)
    if alert.snoozed_until is not None:
        yield "snoozed until", local_time(alert.snoozed_until)
    if alert.resolved_at is not None:
        yield "resolved", local_time(alert.resolved_at)
    if alert.actor:
        yield "by", f"{alert.actor}{f': {alert.reason}' if alert.reason else ''}"
    yield "suspected cause", alert.cause
    if alert.first_event is not None:
        event = alert.first_event
        yield "first event", f"{event.event} {event.kind} {event.detail}, {local_time(event.at)}"
    yield "runbook", alert.runbook_command


def _sections(alert: AlertDetail) -> Iterator[tuple[str, list[str]]]:
    structure = alert.structure
    pages = []
    if structure is not None and structure.is_other_page:
        pages = [
            f"{structure.title or structure.url}: it has almost nothing in common with a good page"
        ]
    examples = [
        f"{each.url or each.key}{f': {each.error}' if each.error else ''}"
        f"{'' if each.job is None else f' (penstock page {each.job})'}"
        for each in alert.examples
    ]
    notices = [
        f"{each.route}: {each.change} {local_time(each.at)}, "
        f"{'waiting' if each.sent_at is None else f'sent {local_time(each.sent_at)}'}"
        for each in alert.notices
    ]
    for title, lines in (
        ("numbers", [each.words for each in alert.numbers]),
        ("examples", examples),
        ("another page: an error, a login or a block", pages),
        ("vanished from the page", [] if structure is None else structure.vanished),
        ("new on the page", [] if structure is None else structure.appeared),
        ("safe to do now", alert.commands if alert.state != "resolved" else []),
        (f"same incident ({alert.incident})", [_other(each) for each in alert.others]),
        ("messages", notices),
        ("evidence that is missing", alert.missing),
    ):
        if lines:
            yield title, lines


def _other(alert: AlertView) -> str:
    return f"{alert.id} {alert.source or 'project'}: {alert.summary} ({alert.state})"


def acknowledge(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        is_new = project.alerts.acknowledge(args.alert, reason=args.reason)
        state = project.alerts.get(args.alert).state
    said = "is acknowledged" if is_new else f"was {state} already"
    return _told(args, "acknowledged" if is_new else state, is_new, said)


def snooze(args: argparse.Namespace) -> int:
    from penstock.app.moments import length, moment
    from penstock.cli.lookup import opened

    with opened(args) as project:
        now = project.now()
        for_s = (
            length("--for", args.for_text)
            if args.until is None
            else moment("--until", args.until, now) - now
        )
        is_new = project.alerts.snooze(args.alert, for_s, reason=args.reason)
    said = f"is snoozed for {duration(for_s)}" if is_new else "was resolved already"
    return _told(args, "snoozed" if is_new else "resolved", is_new, said)


def resolve(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        is_new = project.alerts.resolve(args.alert, reason=args.reason)
    return _told(args, "resolved", is_new, "is resolved" if is_new else "was resolved already")


def _told(args: argparse.Namespace, state: str, is_new: bool, said: str) -> int:
    out: Output = args.out
    if args.json:
        out.json({"alert": args.alert, "state": state, "is_new": is_new})
    else:
        out.line(f"alert {args.alert} {said}")
    return exits.DONE


def test(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        if args.route is None:
            return _show_routes(args, project.alerts.routes())
        tested = project.alerts.test(args.route, reason=args.reason)
    if args.json:
        args.out.json(tested.as_json())
    elif tested.is_accepted:
        args.out.line(f"{tested.route} ({tested.kind}) accepted the test message")
    else:
        args.out.error(
            f"{tested.route} ({tested.kind}) did not accept the test message: {tested.error}"
        )
    return exits.DONE if tested.is_accepted else exits.FAILED


def _show_routes(args: argparse.Namespace, routes: Sequence[AlertRouteView]) -> int:
    if args.json:
        args.out.json_list(route.as_json() for route in routes)
    elif routes:
        rows = ((r.name, r.kind, r.when, ", ".join(r.sources), _digest(r.digest_s)) for r in routes)
        args.out.table(ROUTES, rows)
    else:
        args.out.line("No routes yet. Configure them under `alerts:` in penstock.yaml")
    return exits.DONE


def _digest(digest_s: float | None) -> str:
    return "" if digest_s is None else f"every {duration(digest_s)}"
