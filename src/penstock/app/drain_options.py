"""The options of a drain, for whoever passes them on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from penstock.app.drain_watch import Until
    from penstock.app.views.drains import DrainView


class DrainOptions(TypedDict, total=False):
    """The options of a drain; `Drains.perform` says what each means."""

    shard: tuple[int, int]
    until: Until
    wait_upstream: bool
    retry_failed: bool
    deadline_s: float | None
    on_progress: Callable[[DrainView], None] | None
    tell: Callable[[str], None]
    stopping: threading.Event | None
    grace_s: float | None
    actor: str | None
