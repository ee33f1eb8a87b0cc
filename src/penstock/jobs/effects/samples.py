"""Samples: what came of a job of a canary, or of the control that it is compared with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.jobs.effects.effect import Ended, Transaction, Wordless

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """The records that were saved, by hashes of their keys; how many items were rejected; and the scores."""

    keys: list[str] = []
    rejected: int = 0
    scores: float = 0.0
    scored: int = 0


def sample_of(effects: Effects) -> Sample | None:
    """What these effects say of the page that they are of; None if that is nothing."""
    saves = effects.saves
    if not saves and not effects.rejections:
        return None
    scores = [save.score for save in saves if save.score is not None]
    keys = sorted({_hashed(f"{save.collection}\n{save.key}") for save in saves})
    return Sample(keys, len(effects.rejections), sum(scores), len(scores))


def _hashed(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


class SamplesEffect(Wordless):
    """A worker adds them for runs that are measured; steps know nothing of it."""

    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        """A replay is measured as a live run is."""

    def dry(self, effects: Effects, dried: Effects) -> None:
        pass

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        transaction.add_samples(
            [(job, sample) for end, job in ended for sample in end.effects.samples]
        )
