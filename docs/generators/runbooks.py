"""docs/runbooks/: a page for each runbook and a list of them, from the data that the commands use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from penstock.alerts.rules import RULES
from penstock.app.views.runbooks import check_words
from penstock.errors import Remedy
from penstock.runbooks.library import RUNBOOKS
from penstock.runbooks.runbook import Runbook, Step
from penstock.runbooks.signals import SIGNALS
from penstock.shell import COMMANDS, command_of

NOTE = "<!-- Written by `make reference` from src/penstock/runbooks; a test holds it equal. -->"
INDEX = """\
# Runbooks

{note}

A runbook says what to do about a fault: how to detect it, what to do at once, how to find the cause, and how
to roll back and replay. `penstock runbook` follows it on live data:

```
penstock runbook
penstock runbook source-broke acme.com
penstock runbook source-broke acme.com --json
penstock runbook source-broke acme.com --step stop-requests --dry-run
penstock runbook source-broke acme.com --step stop-requests --yes --reason "the layout changed"
penstock runbook source-broke acme.com --skip drop --reason "the difference is right"
penstock runbook source-broke acme.com --end --reason "the site is gone"
```

- It shows the signals now, and marks those that show the fault.
- It says which step applies. A step that does not apply is refused.
- On a terminal it offers each step with its dry run. You do it, skip it or leave.
- Without a terminal, `--step` takes one step: it shows the dry run and asks; `--yes` agrees, `--dry-run`
  stops there, `--json` prints the result.
- Every step is an event of the journal (`penstock events --kind runbook`), with who took it and why.
- You can leave at any step. The same command continues, for you or for somebody else. While the database is
  away, steps are kept in `.penstock-runbook-steps.jsonl` in the project's folder, and are recorded when it is
  back.
- What a step starts (a replay, a run) is worked on at once, or by the workers that are running; `--detach`
  only queues it.

From Python: `project.runbooks.state("source-broke", "acme.com")` and `project.runbooks.do(…)`. An alert names
its runbook; the dashboard shows the same steps.

| runbook | for | fault | alerts |
|---|---|---|---|"""
PARTS = {
    "mitigate": "Immediate mitigation",
    "root cause": "Root cause",
    "roll back and replay": "Roll back and replay",
    "confirm": "Confirm",
}
SCOPES = {"source": "a source", "any": "a source or the project", "project": "the project"}
# What stands for the source, and for a run that a signal names.
SOURCE, RUN = "acme.com", 12


def pages() -> dict[str, Callable[[], str]]:
    """The pages by their place in docs/."""
    found: dict[str, Callable[[], str]] = {"runbooks/index.md": _index}
    for runbook in RUNBOOKS.values():
        found[f"runbooks/{runbook.name}.md"] = partial(_page, runbook)
    return found


def _index() -> str:
    rows = [
        f"| [{each.name}]({each.name}.md) | {SCOPES[each.scope]} | {each.title} | {_rules(each)} |"
        for each in RUNBOOKS.values()
    ]
    return "\n".join([INDEX.format(note=NOTE), *rows]) + "\n"


def _page(runbook: Runbook) -> str:
    return "\n".join(_lines(runbook)).rstrip() + "\n"


def _lines(runbook: Runbook) -> Iterator[str]:
    yield f"# {runbook.title}\n\n{NOTE}\n\n{runbook.about}\n"
    target = "" if runbook.scope == "project" else f" {SOURCE}"
    yield f"```\npenstock runbook {runbook.name}{target}\n```\n"
    if _rules(runbook):
        yield f"Alerts that lead here: {_rules(runbook)}.\n"
    yield "## Detection signals\n\n| signal | means | shows the fault when |\n|---|---|---|"
    for name in runbook.signals():
        told = [check_words(check) for check in runbook.detects if check.signal == name]
        signal = SIGNALS[name]
        yield f"| {signal.title} | {signal.means} | {' or '.join(told)} |"
    for part, title in PARTS.items():
        steps = [step for step in runbook.steps if step.part == part]
        if steps:
            yield f"\n## {title}\n"
            for step in steps:
                yield from _step(runbook, step)


def _step(runbook: Runbook, step: Step) -> Iterator[str]:
    number = runbook.steps.index(step) + 1
    yield f"### {number}. {step.title}\n\n{step.why}\n"
    yield f"- Step: `{step.name}`, {_kind(step)}"
    when = [check_words(check) for check in step.when]
    when += ["a signal shows the fault"] if step.while_raised else []
    when += ["no signal shows the fault"] if step.part == "confirm" else []
    if when:
        yield f"- Applies when: {'; '.join(when)}"
    if step.settled:
        yield f"- Settled by itself when: {'; '.join(map(check_words, step.settled))}"
    commands = [_command(runbook, step, verb) for verb in (step.verb, *step.verbs)]
    told = [each for each in commands if each]
    yield ""
    if told:
        yield "```\n" + "\n".join(told) + "\n```\n"


def _kind(step: Step) -> str:
    if step.kind == "act":
        return f"performs `{step.verb}` after a dry run"
    return "shows what is known" if step.kind == "look" else "you do it, outside of Penstock"


def _command(runbook: Runbook, step: Step, verb: str) -> str:
    if verb not in COMMANDS:
        return ""
    target = None if runbook.scope == "project" else SOURCE
    given = (
        "".join(f" --{name} {value}" for name, value in step.options) if verb == step.verb else ""
    )
    if target is None and "--source {}" in COMMANDS[verb]:
        everything = " --all" if step.kind == "act" else ""
        return COMMANDS[verb].replace(" --source {}", given or everything)
    if verb == "hooks.redeliver":
        target = "12"
    is_of_run = verb == step.verb and step.takes
    return command_of(Remedy(verb, RUN if is_of_run else target)) + given


def _rules(runbook: Runbook) -> str:
    return ", ".join(f"`{rule.name}`" for rule in RULES.values() if rule.runbook == runbook.name)
