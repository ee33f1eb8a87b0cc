"""GitHub Actions: one workflow that runs the sources, by schedule and by hand."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.exporters.fields import Fields, cron_text
from penstock.exporters.moments import is_steady, moments_of
from penstock.exporters.starts import (
    Export,
    Inexpressible,
    Place,
    Start,
    not_carried_over,
    run_words,
)

FILE = "penstock.yml"
UNHASHED = (
    "      # No hashes: put them and penstock into requirements.txt (pip-compile --generate-hashes)"
)
CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
SETUP_PYTHON = "actions/setup-python@a309ff8b426b58ec0e2a45f0f869d46889d02405 # v6.2.0"
CACHE = "55cc8345863c7cc4c66a329aec7e433d2d1c52a9 # v6.1.0"
SHORTEST_MIN = 5
# A job may take six hours; what it has done by then is to be kept.
RUN_MIN, JOB_MIN = 330, 350
EVERYTHING = "(everything)"
# A run that begins without the database of the last one would leave an empty one to the next.
READY = "steps.ready.outcome == 'success'"
_PATH = re.compile(r"(?!!)[\w./ @+=,\[\]-]*")
_PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")
# Names that GitHub keeps for itself can't be given to a secret.
_RESERVED = re.compile(r"GITHUB_(?!TOKEN$)|RUNNER_|ACTIONS_", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Workplace:
    """What the workflow finds in the repository."""

    # The project's folder and its SQLite file and snapshots, from the repository's root; none on Postgres.
    folder: str
    kept: tuple[str, ...]
    # What is given to pip.
    install: tuple[str, ...]
    python: str


@dataclass(frozen=True, slots=True)
class Trigger:
    cron: str
    zone: str


def github_actions(
    starts: Sequence[Start], sources: Sequence[str], place: Place, at: Workplace
) -> Export:
    """The workflow for these schedules; any of the sources can be run by hand."""
    for path in (at.folder, *at.kept, *at.install):
        if not _PATH.fullmatch(path):
            raise Inexpressible(f"can't write {path!r} into a workflow; use plain letters")
    left_out: list[str] = []
    otherwise: list[str] = []
    runs: dict[Trigger, list[Start]] = {}
    for start in starts:
        try:
            _refuse_expressions(start.source)
            for trigger in _triggers(start):
                runs.setdefault(trigger, []).append(start)
        except Inexpressible as error:
            left_out.append(f"{start.title}: GitHub {error}")
            continue
        if dropped := not_carried_over(start.settings):
            otherwise.append(
                f"{start.title}: GitHub has no {', '.join(dropped)}; it starts without"
            )
    spelled = _told_apart(runs, left_out)
    by_hand = [source for source in sources if _is_plain(source)]
    export = Export({}, tuple(left_out), tuple(otherwise))
    return replace(export, files={FILE: _workflow(spelled, by_hand, place, at, export)})


def _triggers(start: Start) -> list[Trigger]:
    fields, zone = moments_of(start)
    for each in fields:
        _refuse_often(each)
    return [Trigger(cron_text(each), zone) for each in fields]


def _refuse_often(fields: Fields) -> None:
    minutes = [hour * 60 + minute for hour in fields.hours for minute in fields.minutes]
    later = [*minutes[1:], minutes[0] + 24 * 60]
    if any(b - a < SHORTEST_MIN for a, b in zip(minutes, later, strict=True)):
        raise Inexpressible(f"starts nothing more often than every {SHORTEST_MIN} minutes")


def _refuse_expressions(source: str) -> None:
    if not _is_plain(source):
        raise Inexpressible("would read its name as an expression")


def _is_plain(source: str) -> bool:
    return "${{" not in source and source != EVERYTHING


def _told_apart(
    runs: dict[Trigger, list[Start]], left_out: list[str]
) -> dict[str, tuple[Trigger, list[Start]]]:
    """Each trigger by a spelling of its own: a workflow learns which line started it, but not its zone."""
    found: dict[str, tuple[Trigger, list[Start]]] = {}
    for trigger, starts in runs.items():
        spelling = next((each for each in _spellings(trigger.cron) if each not in found), None)
        if spelling is None:
            left_out += [
                f"{each.title}: GitHub can't tell {trigger.cron} from another's" for each in starts
            ]
            continue
        found[spelling] = (trigger, starts)
    return found


def _spellings(cron: str) -> list[str]:
    minute, hour, day, month, weekday = cron.split()
    months = [month, "1-12"] if month == "*" else [month]
    weekdays = [weekday, "0-6"] if weekday == "*" and day == "*" else [weekday]
    return [f"{minute} {hour} {day} {m} {w}" for m in months for w in weekdays]


def _workflow(
    spelled: dict[str, tuple[Trigger, list[Start]]],
    by_hand: Sequence[str],
    place: Place,
    at: Workplace,
    export: Export,
) -> str:
    name = _PLAIN.sub("-", place.project).strip("-")[:60] or "project"
    lines = [*_head(at, export), f"name: {_text(f'penstock {name}')}", "", "on:"]
    lines += _by_hand(by_hand)
    if spelled:
        lines.append("  schedule:")
    for spelling, (trigger, starts) in spelled.items():
        lines += [f"    # {_comment(each.title)}" for each in starts]
        lines.append(f"    - cron: {_text(spelling)}")
        if trigger.zone != "UTC":
            lines += [] if is_steady(trigger.zone) else _about_clocks(trigger.zone)
            lines.append(f"      timezone: {_text(trigger.zone)}")
    lines += [
        "",
        "permissions: {}",
        "",
        "# Never two at once on one store; those that wait are kept, in their order.",
        "concurrency:",
        f"  group: {_text(f'penstock-{name}')}",
        "  cancel-in-progress: false",
        "  queue: max",
        "",
        "jobs:",
        "  ingest:",
        "    name: Ingest",
        "    runs-on: ubuntu-24.04",
        f"    timeout-minutes: {JOB_MIN}",
        "    permissions:",
        "      contents: read # to check the project out",
        *_environment(place),
        "    steps:",
        *_preparing(at, name),
        *_running(spelled, place, at),
        *_keeping(at, name),
    ]
    return "\n".join(lines) + "\n"


def _head(at: Workplace, export: Export) -> list[str]:
    head = [
        "# Made by `penstock export github-actions`. GitHub may start a schedule late, or leave one out, and",
        "# starts none of those later. `penstock up` starts these schedules, too, unless penstock.yaml says",
        "# `timers: external`.",
    ]
    if at.kept:
        head += [
            "#",
            "# The database is a SQLite file that is carried from run to run in GitHub's cache. That is not",
            "# a safe place: a cache that was not used for 7 days is deleted, and so is what is over the",
            "# repository's share of space. Then the next run begins with an empty database. For anything",
            "# that you would miss, use `store: postgresql://…`.",
        ]
    for title, lines in (("Left out", export.left_out), ("Not the same", export.otherwise)):
        if lines:
            head += ["#", f"# {title}:", *(f"#   {_comment(each)}" for each in lines)]
    return head


def _about_clocks(zone: str) -> list[str]:
    return [
        f"      # By the clock of {zone}: a time that is skipped when clocks go forward starts when",
        "      # the gap ends; what GitHub does with a time that comes twice it does not say.",
    ]


def _by_hand(sources: Sequence[str]) -> list[str]:
    options = [EVERYTHING, *sources]
    return [
        "  workflow_dispatch:",
        "    inputs:",
        "      source:",
        "        description: What to run",
        "        type: choice",
        f"        default: {_text(EVERYTHING)}",
        "        options:",
        *(f"          - {_text(each)}" for each in options),
        "      kind:",
        "        description: The kind of run",
        "        type: choice",
        "        default: full",
        "        options: [full, incremental, probe]",
    ]


def _environment(place: Place) -> list[str]:
    return (
        ["    environment: penstock # its secrets, and who may use them, are set there"]
        if _secrets(place)
        else []
    )


def _secrets(place: Place) -> list[str]:
    return [name for name in place.secrets if not _RESERVED.match(name)]


def _preparing(at: Workplace, name: str) -> list[str]:
    found = [
        f"      - uses: {CHECKOUT}",
        "        with:",
        "          persist-credentials: false",
        f"      - uses: {SETUP_PYTHON}",
        "        with:",
        f"          python-version: {_text(at.python)}",
        *([] if "--require-hashes" in at.install else [UNHASHED]),
        "      - name: Install",
        f"        run: {_text(shlex.join(['python', '-P', '-m', 'pip', 'install', *at.install]))}",
    ]
    if not at.kept:
        found.insert(-1, "        id: ready")
    else:
        found += [
            "      - name: Bring the database of the last run",
            "        id: ready",
            f"        uses: actions/cache/restore@{CACHE}",
            "        with:",
            *_cached(at, name),
            f"          restore-keys: {_text(f'penstock-{name}-')}",
        ]
    return found


def _running(
    spelled: dict[str, tuple[Trigger, list[Start]]], place: Place, at: Workplace
) -> list[str]:
    found = []
    for spelling, (_, starts) in spelled.items():
        for kind in dict.fromkeys(each.settings.run_kind for each in starts):
            sources = list(dict.fromkeys(e.source for e in starts if e.settings.run_kind == kind))
            words = [*run_words(place, sources[0], kind, "--json"), *sources[1:]]
            condition = (
                f"${{{{ !cancelled() && {READY} && github.event.schedule == '{spelling}' }}}}"
            )
            found += _step(
                f"Run by schedule ({kind}, {spelling})", condition, shlex.join(words), place, at
            )
    what, kind = '"$PENSTOCK_SOURCE"', '"$PENSTOCK_KIND"'
    words = run_words(place, "SOURCE", "KIND", "--json")
    one = (
        shlex.join(words)
        .replace(" -- SOURCE", f" -- {what}")
        .replace("--kind KIND", f"--kind {kind}")
    )
    everything = one.replace(f" -- {what}", " --all")
    script = f"if [ {what} = {shlex.quote(EVERYTHING)} ]; then {everything}; else {one}; fi"
    inputs = [
        "          PENSTOCK_SOURCE: ${{ inputs.source }}",
        "          PENSTOCK_KIND: ${{ inputs.kind }}",
    ]
    condition = "${{ github.event_name == 'workflow_dispatch' }}"
    return [*found, *_step("Run by hand", condition, script, place, at, inputs)]


def _step(
    name: str, condition: str, script: str, place: Place, at: Workplace, more: Sequence[str] = ()
) -> list[str]:
    env = [*(f"          {each}: ${{{{ secrets.{each} }}}}" for each in _secrets(place)), *more]
    return [
        f"      - name: {_text(name)}",
        f"        if: {condition}",
        f"        timeout-minutes: {RUN_MIN}",
        *([f"        working-directory: {_text(at.folder)}"] if at.folder else []),
        *(["        env:", *env] if env else []),
        f"        run: {_text(script)}",
    ]


def _keeping(at: Workplace, name: str) -> list[str]:
    if not at.kept:
        return []
    return [
        "      - name: Keep the database for the next run, however this one ended",
        f"        if: ${{{{ always() && {READY} }}}}",
        f"        uses: actions/cache/save@{CACHE}",
        "        with:",
        *_cached(at, name),
    ]


def _cached(at: Workplace, name: str) -> list[str]:
    key = f"penstock-{name}-${{{{ github.run_id }}}}-${{{{ github.run_attempt }}}}"
    return [
        "          path: |",
        *(f"            {each}" for each in at.kept),
        f"          key: {key}",
    ]


def _text(text: str) -> str:
    """A YAML string, whatever is in it: JSON's are, and have no line of their own to break."""
    return json.dumps(text, ensure_ascii=False)


def _comment(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
