"""The kill and fault sweep with a project's settings."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.app.views.proof import ProofView, proof_view
from penstock.errors import UsageError
from penstock.prove.scenes import SCENES
from penstock.prove.sweep import LARGEST_SEED, Plan
from penstock.prove.sweep import prove as sweep

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns

MOST_KILLS = 100_000
SCENE_NAMES = tuple(SCENES)


def prove(
    project: Nouns,
    kills: int,
    minutes: float | None,
    seed: int | None,
    only: Sequence[str],
    on_progress: Callable[[str, str], None] | None,
) -> ProofView:
    """Play the scenes in a scratch project, and say what they came to."""
    if not 1 <= kills <= MOST_KILLS:
        raise UsageError(f"kills must be from 1 to {MOST_KILLS}")
    if minutes is not None and not 0 < minutes < float("inf"):
        raise UsageError("minutes must be more than 0")
    chosen = random.randrange(LARGEST_SEED) if seed is None else seed
    plan = Plan(kills, minutes, chosen, tuple(only))
    tell = on_progress if on_progress is not None else _silent
    return proof_view(sweep(project.settings, plan, tell))


def _silent(scene: str, what: str) -> None:
    return None
