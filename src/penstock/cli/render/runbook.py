"""A runbook on a terminal: its signals, its steps, and what one came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import shell
from penstock.cli.remedies import command_of
from penstock.cli.render.tables import text
from penstock.cli.render.wording import local_time, shortened
from penstock.shell import COMMANDS

if TYPE_CHECKING:
    from penstock.app.views.runbooks import RunbookState, StepResult, StepView
    from penstock.cli.render.output import Output
    from penstock.errors import Remedy

SIGNALS = (text("", 0, 1), text("signal", 0, 20), "now", text("", 1))
STEPS = (text("", 0, 2), text("step", 0, 15), "state", text("", 1))
LONGEST = 120
# A step does this for many; the command does it for one.
EACH = {"hooks.redeliver": "DELIVERY"}
MARKS = {"next": ">", "done": "x", "skipped": "-", "settled": "x"}


def tell_state(out: Output, state: RunbookState) -> None:
    """The signals now and the state of each step."""
    whose = f"{state.source}: " if state.source else ""
    out.line(
        f"{whose}{state.title}: {'the fault is there' if state.is_raised else 'no sign of it'}"
    )
    if state.execution is not None:
        begun = state.execution
        out.line(f"followed since {local_time(begun.started_at)}, begun by {begun.actor}")
    if not state.is_recorded:
        out.note("the database is away: steps are kept in a file, and recorded when it is back")
    out.line()
    _tell_signals(out, state)
    out.line()
    _tell_steps(out, state)


def _tell_signals(out: Output, state: RunbookState) -> None:
    out.table(
        SIGNALS,
        (
            ("!" if each.is_raised else "", each.title, each.words, shortened(each.text, LONGEST))
            for each in state.signals
        ),
    )


def _tell_steps(out: Output, state: RunbookState) -> None:
    out.table(STEPS, (_step_line(each) for each in state.steps))


def _step_line(step: StepView) -> tuple[object, ...]:
    told = step.title if step.at is None else f"{local_time(step.at)} {step.actor}: {_came(step)}"
    return f"{MARKS.get(step.state, '')}", step.name, step.state, shortened(told, LONGEST)


def _came(step: StepView) -> str:
    return "; ".join(each for each in (step.summary, step.reason) if each) or step.title


def tell_step(out: Output, state: RunbookState, step: StepView) -> None:
    """One step in full, with what is known that matters for it."""
    out.line(f"{step.number}. {step.title} ({step.name})")
    out.line(f"   {step.why}")
    known = {each.name: each for each in state.signals}
    for name in step.shows:
        signal = known[name]
        out.line(f"   {signal.title}: {signal.words}{f' ({signal.text})' if signal.text else ''}")
        for example in signal.examples:
            out.line(f"     {out.short(example, LONGEST)}")
    for command in commands_of(step):
        out.line(f"   {'the same as' if step.kind == 'act' else 'helps'}: {command}")


def commands_of(step: StepView) -> list[str]:
    """The commands of a shell that do it, or help."""
    return [_command(step, each) for each in step.remedies if each.verb in COMMANDS]


def _command(step: StepView, remedy: Remedy) -> str:
    given = "".join(f" --{name} {value}" for name, value in step.options.items())
    if remedy.target is None and "--source" in COMMANDS[remedy.verb]:
        given = given or (" --all" if step.kind == "act" else "")
        return COMMANDS[remedy.verb].replace(" --source {}", given)
    if remedy.target is None and remedy.verb in EACH:
        return COMMANDS[remedy.verb].replace("{}", EACH[remedy.verb])
    return shell.command_of(remedy) + (given if remedy.verb == step.verb else "")


def tell_result(out: Output, done: StepResult) -> None:
    """What a step came to, and what takes it back."""
    if done.text:
        out.line(f"   done: {done.text}")
    if done.undo is not None:
        out.line(f"   to undo it: {command_of(done.undo)}")
    if done.ended:
        out.line("   The runbook has ended: the fault is gone.")
    if not done.is_recorded:
        out.note("   not in the journal yet: the database is away")
