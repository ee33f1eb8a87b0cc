"""Pages: what a site says of them, and which of them are done with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from penstock.jobs.effects.effect import Ended, Transaction, Wordless

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class Announced(msgspec.Struct, frozen=True):
    """What a site says of a page without its being fetched: when it was changed last."""

    url: str
    changed: str


class Extracted(msgspec.Struct, frozen=True):
    """A page that this attempt fetched; it is done with when the attempt succeeds.

    `version` is of the code and configuration that did it. `is_same`: it was looked at, and is as it was.
    """

    url: str
    hash: str
    snapshot: int | None = None
    at: float = 0.0
    version: str = ""
    # Of how many pages it is one that were fetched together.
    parts: int = 1
    is_same: bool = False
    # Of a replay: it is done with when that is committed.
    is_staged: bool = False


class KnownPage(msgspec.Struct, frozen=True):
    """What is known of a page: as it was announced last, and as it was when it was extracted last."""

    url: str
    announced: str
    announced_run_id: int | None
    done_announced: str
    done_hash: str | None
    done_version: str | None
    done_run_id: int | None
    done_at: float | None
    done_parts: int


class PagesEffect(Wordless):
    """What is announced and what is extracted is written by one statement, a row for each page."""

    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        effects.announced.clear()
        effects.gone.clear()
        if not is_redrive:
            effects.extracted = [replace(page, is_staged=True) for page in effects.extracted]

    def dry(self, effects: Effects, dried: Effects) -> None:
        """A probe has looked at too little to be done with a page."""

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        transaction.note_pages([(job, end.effects) for end, job in ended])
