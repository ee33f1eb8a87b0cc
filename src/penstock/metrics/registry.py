"""The registry: every metric family there is. The text, the docs and the exports are made from it."""

from __future__ import annotations

from penstock.metrics.counted import COUNTED
from penstock.metrics.family import Family
from penstock.metrics.present import PRESENT

FAMILIES: dict[str, Family] = {each.name: each for each in (*PRESENT, *COUNTED)}
