"""Secrets: what front ends must not show, also before any settings are known."""

from __future__ import annotations

import os
from collections.abc import Mapping

from penstock.settings.secrets import SECRET_NAME, redact, redact_within

__all__ = ["environment_secrets", "redact", "redact_within", "secrets_among"]


def environment_secrets() -> frozenset[str]:
    """What the environment holds under names like `API_KEY`."""
    return secrets_among(os.environ)


def secrets_among(variables: Mapping[str, str]) -> frozenset[str]:
    """The values of variables with such names."""
    return frozenset(value for name, value in variables.items() if SECRET_NAME.search(name))
