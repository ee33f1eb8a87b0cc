"""Quality: what is wrong with a company, what it is worth, and whether a dataset meets its targets.

In:    companies after enrichment, with what was checked about them.
Out:   issues, scores from 0 to 100, figures of a dataset, and targets that are met or not.
Never: changing a value, a clock.
"""

from penstock.builder.quality.checks import ISSUES, check
from penstock.builder.quality.kpis import DEFAULT_TARGETS, Kpi, kpis
from penstock.builder.quality.score import WEIGHTS, score
from penstock.builder.quality.summary import QualitySummary, summarise

__all__ = [
    "DEFAULT_TARGETS",
    "ISSUES",
    "WEIGHTS",
    "Kpi",
    "QualitySummary",
    "check",
    "kpis",
    "score",
    "summarise",
]
