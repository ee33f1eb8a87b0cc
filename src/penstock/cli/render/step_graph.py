"""A graph of steps as Mermaid text and as a picture."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.app.views.step_graphs import GraphStepView, StepGraphView

BOX_HEIGHT, ROW, GAP, MARGIN, LETTER = 34, 52, 56, 20, 7.4
COLOURS = ("#dbeafe", "#dcfce7", "#fef3c7", "#fae8ff", "#ffe4e6", "#e0f2fe", "#f1f5f9")


def mermaid(graph: StepGraphView) -> str:
    """A flowchart, with a box around each phase."""
    lines = ["flowchart LR"]
    for number, (phase, steps) in enumerate(_by_phase(graph).items()):
        lines.append(f'  subgraph phase{number}["{_quoted(phase or graph.name)}"]')
        lines += [f"    {each.identifier}{_shape(each)}" for each in steps]
        lines.append("  end")
    for step in graph.steps:
        lines += [f"  {_identifier(before)} --> {step.identifier}" for before in step.after]
    return "\n".join(lines)


def _shape(step: GraphStepView) -> str:
    name = _quoted(step.name)
    return f'[["{name}"]]' if step.is_gather else f'["{name}"]'


def _quoted(text: str) -> str:
    return text.replace("&", "#amp;").replace('"', "#quot;")


def _identifier(name: str) -> str:
    return name.replace(".", "_")


def _by_phase(graph: StepGraphView) -> dict[str, list[GraphStepView]]:
    found: dict[str, list[GraphStepView]] = {}
    for step in graph.steps:
        found.setdefault(step.phase, []).append(step)
    return found


def svg(graph: StepGraphView) -> str:
    """A picture: steps from left to right, each behind all that gates it, coloured by phase."""
    columns = _columns(graph)
    widths = [max(_width(step) for step in column) for column in columns]
    lefts = [MARGIN + sum(widths[:at]) + GAP * at for at in range(len(columns))]
    tallest = max(len(column) for column in columns)
    phases = list(_by_phase(graph))
    places = {
        step.name: (lefts[at], MARGIN + ROW * row + ROW * (tallest - len(column)) / 2, widths[at])
        for at, column in enumerate(columns)
        for row, step in enumerate(column)
    }
    width = lefts[-1] + widths[-1] + MARGIN
    height = MARGIN * 2 + ROW * tallest + 22 * len(phases)
    drawn = [_edge(places[before], places[s.name]) for s in graph.steps for before in s.after]
    drawn += [
        _box(step, places[step.name], COLOURS[phases.index(step.phase) % 7]) for step in graph.steps
    ]
    drawn += [_legend(n, phase, MARGIN + ROW * tallest + 22 * n) for n, phase in enumerate(phases)]
    title = f"{graph.name} {graph.profile}".strip()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="13">\n'
        f"<title>{escape(title)}</title>\n" + "\n".join(drawn) + "\n</svg>"
    )


def _columns(graph: StepGraphView) -> list[list[GraphStepView]]:
    level: dict[str, int] = {}
    for step in graph.steps:
        level[step.name] = 1 + max((level[before] for before in step.after), default=-1)
    columns: list[list[GraphStepView]] = [[] for _ in range(max(level.values()) + 1)]
    for step in graph.steps:
        columns[level[step.name]].append(step)
    return columns


def _width(step: GraphStepView) -> float:
    return len(step.name) * LETTER + 24


def _edge(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    x1, y1 = start[0] + start[2], start[1] + BOX_HEIGHT / 2
    x2, y2 = end[0], end[1] + BOX_HEIGHT / 2
    middle = (x1 + x2) / 2
    return (
        f'<path d="M{x1:.0f} {y1:.0f} C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}" '
        'fill="none" stroke="#94a3b8" stroke-width="1.5"/>'
    )


def _box(step: GraphStepView, place: tuple[float, float, float], colour: str) -> str:
    x, y, width = place
    thick = 2.5 if step.is_gather else 1
    return (
        f'<g><title>{escape(step.why)}</title><rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" '
        f'height="{BOX_HEIGHT}" rx="6" fill="{colour}" stroke="#334155" stroke-width="{thick}"/>'
        f'<text x="{x + width / 2:.0f}" y="{y + 22:.0f}" text-anchor="middle" fill="#0f172a">'
        f"{escape(step.name)}</text></g>"
    )


def _legend(number: int, phase: str, y: float) -> str:
    return (
        f'<rect x="{MARGIN}" y="{y:.0f}" width="14" height="14" fill="{COLOURS[number % 7]}" '
        f'stroke="#334155"/><text x="{MARGIN + 22}" y="{y + 12:.0f}" fill="#0f172a">{escape(phase)}</text>'
    )
