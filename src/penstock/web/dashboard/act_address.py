"""Where the page of an act is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from penstock.app.verbs.acts import ACTS


def target_names(name: str) -> tuple[str, ...]:
    """The parameters that say what an act is about."""
    act = ACTS[name]
    return act.path_names or act.takes[:1]


def act_address(name: str, target: Any, back: str) -> str:
    """The page of an act on something: a value, or its parameters by name."""
    if isinstance(target, Mapping):
        given = {key: value for key, value in target.items() if value is not None}
    else:
        given = {} if target is None else {target_names(name)[0]: target}
    return f"/acts/{name}?{urlencode({**given, 'back': back})}"
