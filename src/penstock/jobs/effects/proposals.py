"""Proposals: sources that a pipeline has discovered. It can propose them, and nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from penstock.jobs.effects.effect import Ended, Live, Transaction

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects
    from penstock.settings.secrets import Masker


class Proposed(msgspec.Struct, frozen=True):
    """A source that was discovered: its key, and its section of penstock.yaml as JSON."""

    source: str
    keys: bytes
    reason: str = ""


class ProposalsEffect(Live):
    """Proposed again it is the same: it needs no key to be written once."""

    def clear(self, effects: Effects) -> None:
        effects.proposals.clear()

    def redact(self, effects: Effects, masker: Masker) -> None:
        """What is proposed is read by people, and may be written into a file."""
        if effects.proposals:
            effects.proposals = [
                replace(
                    each,
                    keys=masker.mask(each.keys.decode()).encode(),
                    reason=masker.mask(each.reason),
                )
                for each in effects.proposals
            ]

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        found = [(job, each) for end, job in ended for each in end.effects.proposals]
        if found:
            transaction.propose_sources(found)
