"""`penstock sources`: what is configured, and how each source is doing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.commands.source_lifecycle import add_lifecycle
from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.render.tables import text, whole
from penstock.cli.render.wording import duration, local_time, until

if TYPE_CHECKING:
    from penstock.app.views.outlook import SourceOutlook
    from penstock.app.views.sources import SourceDetail

DESCRIPTION = """\
List the sources of penstock.yaml, those that were proposed, and former ones that still have history. The
verbs lead a source from its proposal over checks and a trial to its activation. --check imports the
pipelines of all sources and says what is wrong with them; without it, none of your code runs."""
EXAMPLES = """\
  penstock sources
  penstock sources --check
  penstock sources --json
  penstock sources --state proposed
  penstock sources propose shop.example --connector web --set sitemap=https://shop.example/sitemap.xml
  penstock sources report acme.com"""
STATES = ("proposed", "trial", "active", "retired")
COLUMNS = (
    *(
        "source",
        whole("lifecycle", 1),
        text("pipeline", 6),
        text("schedule", 4),
        whole("next run", 3),
    ),
    *(whole("last run", 5), "state", whole("queued", 5), whole("running", 5)),
    *(whole("waiting", 5), whole("quarantined", 1), text("why not now", 1, 20)),
)


def register(commands: Commands) -> None:
    parser = add_command(commands, "sources", DESCRIPTION, EXAMPLES)
    parser.add_argument("--check", action="store_true", help="import and check their pipelines")
    parser.add_argument(
        "--state", choices=STATES, metavar="STATE", help=f"only those: {', '.join(STATES)}"
    )
    add_json(parser)
    parser.set_defaults(run=run)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    add_lifecycle(verbs)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        if args.check:
            project.validate()
        found = list(project.sources.each())
        if args.state:
            found = [each for each in found if each.lifecycle == args.state]
        known = {} if args.json else {each.source: each for each in project.outlook()}
        file = project.settings.file
    if args.json:
        args.out.json_list(each.as_json() for each in found)
    elif found:
        args.out.table(COLUMNS, (_row(each, known.get(each.key), file.name) for each in found))
    else:
        args.out.line(f"{file} has no sources yet")
    return 0


def _row(source: SourceDetail, seen: SourceOutlook | None, file: str) -> tuple[object, ...]:
    return (
        source.key,
        "" if source.lifecycle == "active" else source.lifecycle,
        source.pipeline or "",
        source.schedule,
        local_time(source.next_run_at) if source.is_configured else "",
        source.last_run_id or "",
        source.last_state or "",
        *(source.queued, source.running, source.waiting, source.quarantined),
        _why_not_now(source, seen, file),
    )


def _why_not_now(source: SourceDetail, seen: SourceOutlook | None, file: str) -> str:
    """The first gate that stops it, in the words of a list."""
    from penstock.cli.commands.breakers import words
    from penstock.cli.commands.status import degraded_words, held_words, paused_words

    if not source.is_configured and source.lifecycle != "proposed":
        return f"not in {file} any more"
    if seen is None or not seen.stops:
        return ""
    stop, now = seen.stops[0], seen.now
    match stop.name:
        case "legal_hold" | "lifecycle" | "compliance":
            return stop.by
        case "variables":
            return f"the environment variable {stop.by}"
        case "held" if source.held:
            return held_words(source.held[0])
        case "paused":
            return paused_words(source)
        case "degraded":
            return degraded_words(source)
        case "window":
            return f"outside its hours; they start {until(stop.opens_at or now, now)}"
        case "breaker" if source.breaker is not None:
            return words(source.breaker, now)
        case "cooldown":
            left = duration((stop.opens_at or now) - now)
            return f"{source.cooldown_reason or 'asked to wait'}, {left} left"
    return _spent_words(source, now)


def _spent_words(source: SourceDetail, now: float) -> str:
    """Its runs begin, and end partial at the first request."""
    from penstock.cli.commands.budget import exhausted_words

    return exhausted_words(source.spent, now) if source.spent is not None else ""
