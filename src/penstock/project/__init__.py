"""A project: its settings, its pipelines and its store, and the verbs an operator or a program has.

The command line, the demo and user code all go through this class; none of them reaches the store
by another way.
"""

from __future__ import annotations

from penstock.project.ingested import Ingested
from penstock.project.opened import default_actor, lane_limits
from penstock.project.run_starter import COMMANDS, KINDS, RunStarter, refuse_signal, run_options

__all__ = [
    "COMMANDS",
    "KINDS",
    "Project",
    "default_actor",
    "lane_limits",
    "refuse_signal",
    "run_options",
]


class Project(RunStarter, Ingested):
    """One penstock.yaml and everything that belongs to it."""
