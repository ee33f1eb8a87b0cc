"""Conditions on alerts, as `when` of a route has them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from penstock.errors import ConfigError, nearest
from penstock.settings.alert_rules import RULE_NAMES, SEVERITIES

EXAMPLE = "severity >= high"
_COMPARISON = re.compile(r"\s*([A-Za-z_]+)\s*(>=|<=|==|!=|>|<|=)\s*([A-Za-z0-9-]+)\s*")
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`severity >= high` or `rule != stale-source`."""

    field: Literal["severity", "rule"]
    sign: str
    value: str

    def holds(self, severity: str, rule: str) -> bool:
        if self.field == "rule":
            return (rule == self.value) == (self.sign == "==")
        ranks = [str(each) for each in SEVERITIES]
        given, wanted = ranks.index(severity), ranks.index(self.value)
        return {
            ">=": given >= wanted,
            "<=": given <= wanted,
            ">": given > wanted,
            "<": given < wanted,
            "==": given == wanted,
            "!=": given != wanted,
        }[self.sign]


When = tuple[Comparison, ...]


def parse_when(text: str) -> When:
    """`severity >= high and rule != stale-source`: comparisons that must all hold."""
    return tuple(_comparison(part, text) for part in _AND.split(text.strip()))


def _comparison(part: str, text: str) -> Comparison:
    match = _COMPARISON.fullmatch(part)
    if match is None:
        raise ConfigError(f"{text!r} is not a condition: write it as {EXAMPLE}")
    name, sign, value = match[1].lower(), match[2], match[3]
    sign = "==" if sign == "=" else sign
    if name == "severity":
        return Comparison("severity", sign, _known(value.lower(), SEVERITIES, "severity"))
    if name == "rule":
        if sign not in ("==", "!="):
            raise ConfigError(f"rule can be compared with == and != only, not with {sign}")
        return Comparison("rule", sign, _known(value, RULE_NAMES, "rule"))
    raise ConfigError(f"{name} can't be compared, {nearest(name, ('severity', 'rule'))}")


def _known(value: str, known: Collection[str], noun: str) -> str:
    if value not in known:
        raise ConfigError(f"there is no {noun} {value}, {nearest(value, known)}")
    return value


def when_text(when: When) -> str:
    return " and ".join(f"{each.field} {each.sign} {each.value}" for each in when)
