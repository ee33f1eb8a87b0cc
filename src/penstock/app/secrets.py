"""Secrets: what front ends must not show, also before any settings are known."""

from __future__ import annotations

import os

from penstock.settings.secrets import SECRET_NAME, redact, redact_within

__all__ = ["environment_secrets", "redact", "redact_within"]


def environment_secrets() -> frozenset[str]:
    """What the environment holds under names like `API_KEY`."""
    return frozenset(value for name, value in os.environ.items() if SECRET_NAME.search(name))
