"""Audit: the journal as a chain of hashes, to be verified, exported and anchored elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.app.anchors import append_anchor, read_anchors
from penstock.app.noun import Noun
from penstock.app.views.audit import HeadView, VerificationView, finding_view, head_view
from penstock.audit.line import canonical
from penstock.audit.verification import Verification

if TYPE_CHECKING:
    from penstock.audit.chain import Seal

FORMAT = "penstock-audit-1"
# So often a long verification tells how far it is.
EVENTS_A_NOTE = 100_000
# Whoever looks at the head wants it at once: more than this are not counted.
MOST_UNSEALED = 100_000


class Audit(Noun):
    """The seals over the journal. They are made by whoever leads; nothing here changes an event."""

    def head(self, *, anchor: Path | None = None) -> HeadView:
        """The last seal. With `anchor`, what is not sealed yet is sealed first, and added to that file."""
        if anchor is not None:
            self._store.audit.seal_all()
        found = head_view(
            self._name, self._store.audit.last(), self._store.audit.unsealed(MOST_UNSEALED)
        )
        if anchor is not None and found.seal:
            append_anchor(anchor, found)
        return found

    def verify(
        self,
        *,
        anchor: Path | None = None,
        on_progress: Callable[[int], None] = lambda events: None,
    ) -> VerificationView:
        """Compare every event with its seal, and every seal with the one before it.

        With `anchor`, a file of heads, each of them must still be in the chain: only this finds a chain that
        was cut off or rebuilt. `on_progress` is called with how many events were compared.
        """
        heads = [] if anchor is None else read_anchors(anchor, self._name)
        found, told = Verification(self._store.audit.tombstones()), 0
        acts = self._store.audit.acts()
        for seal, lines in self._store.audit.walk():
            found.seal(seal, lines)
            if found.events - told >= EVENTS_A_NOTE:
                told = found.events
                on_progress(told)
        found.finish(acts)
        found.anchors(heads)
        return self._view(found, len(heads))

    def _view(self, found: Verification, anchors: int) -> VerificationView:
        unsealed = self._store.audit.unsealed()
        return VerificationView(
            is_sound=not found.findings,
            seals=found.last.number if found.last else 0,
            events=found.events,
            pruned_seals=found.pruned_seals,
            pruned_events=found.pruned_events,
            pruned_until=found.pruned_until,
            erased=found.erased,
            unsealed=unsealed,
            anchors=anchors,
            head=head_view(self._name, found.last, unsealed),
            findings=[finding_view(each) for each in found.findings],
        )

    def export(self) -> Iterator[str]:
        """The whole chain as lines of JSON: each event as it was hashed, and each seal behind its events.

        The SHA-256 of an event's line is the hash that its seal covers.
        """
        yield _json({"format": FORMAT, "project": self._name})
        for each in self._store.audit.tombstones():
            yield _json({"tombstone": each})
        for seal, lines in self._store.audit.walk():
            yield from (canonical(line).decode() for line in lines)
            yield _json({"seal": _without_fingerprints(seal)})
        yield from (canonical(line).decode() for line in self._store.audit.tail())

    @property
    def _name(self) -> str:
        return self._project.settings.project


def _without_fingerprints(seal: Seal) -> dict[str, object]:
    said: dict[str, object] = msgspec.structs.asdict(seal)
    del said["fingerprints"]
    return said


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
