"""docs/metrics.md: the tables of families and of rules. The text between them is written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from penstock.exporters.prometheus_rules import ALERTS, RECORDING
from penstock.metrics.counted import COUNTED
from penstock.metrics.family import Family
from penstock.metrics.present import PRESENT

PAGE = Path(__file__).parents[1] / "metrics.md"
HEAD = "| metric | type | labels | meaning | derived from |\n|---|---|---|---|---|\n"
RECORDING_HEAD = "| series | expression |\n|---|---|\n"
ALERTS_HEAD = "| alert | severity | after | fires when | runbook |\n|---|---|---|---|---|\n"


def page() -> str:
    """The page as it is, with every table in it made again."""
    text = PAGE.read_text("utf-8")
    for name, table in TABLES.items():
        first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(first)
        text = f"{before}{first}\n{table()}\n{last}{rest.split(last)[1]}"
    return text


def _families(families: Iterable[Family]) -> str:
    rows = (
        f"| `{each.shown_name}` | {each.kind} | {_labels(each.labels)} | {each.help} | {each.derived} |\n"
        for each in families
    )
    return HEAD + "".join(rows)


def _labels(labels: tuple[str, ...]) -> str:
    return ", ".join(f"`{each}`" for each in labels) or "none"


def _recording() -> str:
    rows = (f"| `{each.name}` | `{_cell(each.expression)}` |\n" for each in RECORDING)
    return RECORDING_HEAD + "".join(rows)


def _alerts() -> str:
    rows = (
        f"| `{each.name}` | {each.severity} | {each.holds} | `{_cell(each.expression)}` | "
        f"{_runbook(each.runbook)} |\n"
        for each in ALERTS
    )
    return ALERTS_HEAD + "".join(rows)


def _runbook(name: str) -> str:
    return f"[{name}](runbooks/{name}.md)" if name else "none"


def _cell(expression: str) -> str:
    """A vertical line would end the cell."""
    return expression.replace("|", "\\|")


TABLES: dict[str, Callable[[], str]] = {
    "present": lambda: _families(PRESENT),
    "counted": lambda: _families(COUNTED),
    "recording": _recording,
    "alerts": _alerts,
}
