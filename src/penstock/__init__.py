"""Penstock ingests data from many sources into clean, versioned records.

The public names, nothing else. Each is imported when it is first used, so that a command which
needs none of them starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.http.failures import FetchError
    from penstock.http.response import Response
    from penstock.jobs.failures import AuthFailed, BadData, Permanent, Transient
    from penstock.jobs.outcome import Reject, Skip, Snooze
    from penstock.pipeline.context import Context
    from penstock.pipeline.pipeline import Pipeline
    from penstock.pipeline.registry import Registry

__all__ = [
    "AuthFailed",
    "BadData",
    "Context",
    "FetchError",
    "Permanent",
    "Pipeline",
    "Project",
    "Registry",
    "Reject",
    "Response",
    "Skip",
    "Snooze",
    "Transient",
    "__version__",
]

_HOMES = {
    "AuthFailed": "penstock.jobs.failures",
    "BadData": "penstock.jobs.failures",
    "Context": "penstock.pipeline.context",
    "FetchError": "penstock.http.failures",
    "Permanent": "penstock.jobs.failures",
    "Pipeline": "penstock.pipeline.pipeline",
    "Project": "penstock.app",
    "Registry": "penstock.pipeline.registry",
    "Reject": "penstock.jobs.outcome",
    "Response": "penstock.http.response",
    "Skip": "penstock.jobs.outcome",
    "Snooze": "penstock.jobs.outcome",
    "Transient": "penstock.jobs.failures",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
