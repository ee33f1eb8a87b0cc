"""The tables of keys in the documentation, made from the Structs.

`python -m penstock.settings.reference docs/configuration.md docs/schedules.md docs/alerts.md` writes
them. Each stands between two comments, `<!-- keys: NAME -->` and `<!-- end of keys -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from penstock.settings.alert_rules import THRESHOLDS
from penstock.settings.alerts import RouteKeys
from penstock.settings.budget import BudgetKeys
from penstock.settings.connector import BUILT_IN, find_connector
from penstock.settings.declaration import For, Key, Keys, keys_of, note
from penstock.settings.hooks import HookKeys, TriggerSettings
from penstock.settings.metrics import MetricsSettings
from penstock.settings.onboarding import OnboardingSettings
from penstock.settings.project import ProjectKeys
from penstock.settings.schedule import POLICIES, ScheduleKeys
from penstock.settings.tracing import TracingSettings

HEAD = "| key | meaning | default |\n|---|---|---|\n"
SCHEDULE_HEAD = "| key | for | meaning | default |\n|---|---|---|---|\n"
# What stands for a name of the user's own.
NAMES = {"sources": "KEY", "hosts": "NAME", "cells": "NAME"}
EXPANDED = ("sources.KEY.breaker",)
_TABLE = re.compile(r"(<!-- keys: (\w+) -->\n\n).*?(\n<!-- end of keys -->)", re.DOTALL)


def tables() -> dict[str, str]:
    """Each table under its name."""
    return {
        "project": _table(_rows(ProjectKeys, "")),
        "schedule": SCHEDULE_HEAD + "".join(map(_schedule_row, _schedule_keys())),
        "hook": _table(_row(key, "") for key in keys_of(HookKeys)),
        "trigger": _table(_row(key, "trigger.") for key in keys_of(TriggerSettings)),
        "route": _table(_row(key, "") for key in keys_of(RouteKeys)),
        "alert_rules": _table(_thresholds()),
        "metrics": _table(_row(key, "metrics.") for key in keys_of(MetricsSettings)),
        "onboarding": _table(_row(key, "onboarding.") for key in keys_of(OnboardingSettings)),
        "tracing": _table(_row(key, "tracing.") for key in keys_of(TracingSettings)),
        "budget": _table(_row(key, "budget.") for key in keys_of(BudgetKeys)),
        **{
            f"connector_{name}": _table(_with_sections(find_connector(name).Settings))
            for name in BUILT_IN
        },
    }


def with_tables(page: str) -> str:
    """The page with every table in it as it has to be."""
    made = tables()
    return _TABLE.sub(lambda found: found[1] + made[found[2]] + found[3], page)


def _table(rows: Iterator[str]) -> str:
    return HEAD + "".join(rows)


def _rows(section: type[Keys], prefix: str) -> Iterator[str]:
    for key in keys_of(section):
        if key.description:
            yield _row(key, prefix)
        if key.each is not None and key.name in NAMES:
            yield from _rows(key.each, f"{prefix}{key.name}.{NAMES[key.name]}.")
        # A section with a row of its own has its keys in it or in a table below; a source's breaker has both.
        elif key.section is not None and (not key.description or prefix + key.name in EXPANDED):
            yield from _rows(key.section, f"{prefix}{key.name}.")


def _with_sections(section: type[Keys], prefix: str = "") -> Iterator[str]:
    """The keys of a connector; those of its sections stand below them."""
    for key in keys_of(section):
        yield _row(key, prefix)
    for key in keys_of(section):
        if key.section is not None:
            yield from _with_sections(key.section, f"{prefix}{key.name}.")


def _row(key: Key, prefix: str) -> str:
    return f"| `{prefix}{key.name}` | {key.description} | {default_words(key)} |\n"


def _thresholds() -> Iterator[str]:
    for name, thresholds in THRESHOLDS.items():
        keys = (key for key in keys_of(thresholds) if key.name != "severity")
        yield from (_row(key, f"{name}.") for key in keys)


def _schedule_keys() -> list[Key]:
    """All but the policies; first those that every policy takes."""
    of_one = {key for own in POLICIES.values() for key in own}
    keys = [key for key in keys_of(ScheduleKeys) if key.name not in POLICIES]
    return sorted(keys, key=lambda key: key.name in of_one)


def _schedule_row(key: Key) -> str:
    belongs = note(key.notes, For)
    words = "all" if belongs is None else belongs.words
    return f"| `{key.name}` | {words} | {key.description} | {default_words(key)} |\n"


def default_words(key: Key) -> str:
    """The default of a key, as a table has it."""
    if key.default_words is not None:
        return key.default_words
    if key.is_required:
        return "required"
    value = key.shown(key.default)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, (int, float)):
        return f"{value:g}"
    return f"`{value}`" if not isinstance(value, list) else f"`[{', '.join(value)}]`"


def main(files: list[str]) -> None:
    for name in files:
        file = Path(name)
        file.write_text(with_tables(file.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
