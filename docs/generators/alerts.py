"""docs/alerts.md: the tables that are made from the rules. The text between them is written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.alerts.rules import RULES

PAGE = Path(__file__).parents[1] / "alerts.md"
HEAD = "| rule | severity | about | opens when | runbook |\n|---|---|---|---|---|\n"


def page() -> str:
    """The page as it is, with every table in it made again."""
    text = PAGE.read_text("utf-8")
    for name, table in TABLES.items():
        first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(first)
        text = f"{before}{first}\n{table()}\n{last}{rest.split(last)[1]}"
    return text


def _rules() -> str:
    rows = (
        f"| `{rule.name}` | {rule.severity} | {rule.scope} | {rule.summary} | `{rule.runbook}` |\n"
        for rule in RULES.values()
    )
    return HEAD + "".join(rows)


TABLES: dict[str, Callable[[], str]] = {"rules": _rules}
