"""A step's word that what is known of its source's shape is still true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.jobs.effects.effect import Ended, Live, Transaction

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class SchemaEffect(Live):
    def clear(self, effects: Effects) -> None:
        effects.is_schema_verified = False

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        transaction.verify_schemas([job for _, job in ended])
