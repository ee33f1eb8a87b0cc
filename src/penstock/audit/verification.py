"""Verification: goes along the chain from its first seal, and names what is not as it was sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Literal

import msgspec

from penstock.audit.chain import FINGERPRINT, GENESIS, Head, Seal, digest_of, read_marks, seal_hash
from penstock.audit.line import Line, hash_of

What = Literal[
    "event_changed",
    "event_removed",
    "event_added",
    "events_changed",
    "seal_changed",
    "seal_removed",
    "seal_unmarked",
    "pruned_without_retention",
    "erased_without_act",
    "anchor_missing",
    "anchor_differs",
]


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it was sealed; `event` and `seal` say where."""

    what: What
    text: str
    event: int | None = None
    seal: int | None = None


class Tombstone(msgspec.Struct, frozen=True):
    """A row out of which data was erased: the hash that was sealed, and that of what is left."""

    event_id: int
    act_id: int
    sealed: str
    erased: str


class Act(msgspec.Struct, frozen=True):
    """An event that says that data was erased: how many rows of the journal, and their digest."""

    id: int
    digest: str


def tombstones_digest(tombstones: Sequence[Tombstone]) -> str:
    """What the event of an erasure says of its tombstones."""
    rows = sorted((each.event_id, each.sealed, each.erased) for each in tombstones)
    return sha256(msgspec.json.encode(rows)).hexdigest()


class Verification:
    """Is given each seal in order with the rows it covers, then what comes behind the last one."""

    def __init__(self, tombstones: Sequence[Tombstone] = ()) -> None:
        self._tombstones = {(each.event_id, each.erased): each for each in tombstones}
        self._used: list[Tombstone] = []
        self._before: Seal | None = None
        self._pruned: list[Seal] = []
        self._hashes: dict[int, str] = {0: GENESIS}
        self.findings: list[Finding] = []
        self.events = 0
        self.pruned_events = 0
        self.erased = 0

    @property
    def last(self) -> Seal | None:
        """The last seal that was given."""
        return self._before

    @property
    def pruned_until(self) -> float | None:
        """When the newest event was written that retention has dropped."""
        return max((seal.newest_at for seal in self._pruned if seal.events), default=None)

    @property
    def pruned_seals(self) -> int:
        return len(self._pruned)

    def seal(self, seal: Seal, lines: Sequence[Line]) -> None:
        """The next seal, and the rows that are there of what it covers."""
        before = self._before
        expected = before.number + 1 if before else 1
        if seal.number > expected:
            self._find("seal_removed", _missing(expected, seal.number - 1), seal=expected)
            # Which of these rows the missing seals covered can't be known.
            first = min(read_marks(seal.fingerprints) or {0: ""}, default=0)
            lines = [line for line in lines if line.id >= first]
        elif seal_hash(seal, before) != seal.hash:
            follows = f" or does not follow seal {before.number}" if before else ""
            self._find("seal_changed", f"seal {seal.number} was changed{follows}", seal=seal.number)
        if before and seal.gone_through < before.gone_through:
            self._find("seal_changed", f"seal {seal.number} takes retention back", seal=seal.number)
        self._before = seal
        self._hashes[seal.number] = seal.hash
        if seal.pruned_at is not None:
            self._gone(seal, lines)
        else:
            self._rows(seal, lines)

    def _gone(self, seal: Seal, lines: Sequence[Line]) -> None:
        self._pruned.append(seal)
        self.pruned_events += seal.events
        for line in lines:
            text = f"event {line.id} was added where retention has dropped all events"
            self._find("event_added", text, line.id, seal.number)

    def _rows(self, seal: Seal, lines: Sequence[Line]) -> None:
        hashes = [self._sealed_hash(line) for line in lines]
        marks = read_marks(seal.fingerprints)
        named = self._named(seal, lines, hashes, marks or {}) if marks is not None else False
        is_same = len(lines) == seal.events and digest_of(hashes) == seal.digest
        if not is_same and not named:
            text = f"events of seal {seal.number}, up to {seal.last_id}, are not what was sealed"
            self._find("events_changed", text, seal=seal.number)
        elif is_same and (named or marks is None):
            # The rows are right, so what names them is wrong.
            self._unmarked(seal)
        self.events += len(lines)

    def _unmarked(self, seal: Seal) -> None:
        self.findings = [
            each
            for each in self.findings
            if each.seal != seal.number or not each.what.startswith("event_")
        ]
        text = f"the fingerprints of seal {seal.number} were changed; its events were not"
        self._find("seal_unmarked", text, seal=seal.number)

    def _named(
        self, seal: Seal, lines: Sequence[Line], hashes: Sequence[bytes], marks: Mapping[int, str]
    ) -> bool:
        """Name the rows of a seal that are not what was sealed; whether there are any."""
        many = len(self.findings)
        present = {line.id for line in lines}
        for line, each in zip(lines, hashes, strict=True):
            mark = marks.get(line.id)
            if mark is None:
                self._find("event_added", f"event {line.id} was added", line.id, seal.number)
            elif mark != each[:FINGERPRINT].hex():
                text = f"event {line.id} ({line.kind}) was changed"
                self._find("event_changed", text, line.id, seal.number)
        for event_id in marks.keys() - present:
            self._find("event_removed", f"event {event_id} was removed", event_id, seal.number)
        return len(self.findings) > many

    def _sealed_hash(self, line: Line) -> bytes:
        """What was sealed of a row: its hash, or that of before data was erased, if only that was erased."""
        found = hash_of(line).hex()
        was_erased = False
        # Data may have been erased more than once; each time leaves a tombstone over the one before.
        while (tombstone := self._tombstones.pop((line.id, found), None)) is not None:
            was_erased, found = True, tombstone.sealed
            self._used.append(tombstone)
        self.erased += was_erased
        try:
            return bytes.fromhex(found)
        except ValueError:
            return hash_of(line)

    def finish(self, acts: Sequence[Act]) -> None:
        """After the last seal: what was dropped or erased must be known to the chain, with who did it."""
        gone_through = self._before.gone_through if self._before else 0
        for seal in self._pruned:
            if seal.number > gone_through:
                text = f"the events of seal {seal.number} were removed, and not by retention"
                self._find("pruned_without_retention", text, seal=seal.number)
        by_act: dict[int, list[Tombstone]] = {}
        for each in [*self._used, *self._tombstones.values()]:
            by_act.setdefault(each.act_id, []).append(each)
        known = {act.id: act.digest for act in acts}
        for act_id, tombstones in sorted(by_act.items()):
            if known.get(act_id) != tombstones_digest(tombstones):
                ids = ", ".join(str(each.event_id) for each in tombstones[:10])
                text = f"data was erased from event {ids}, and no event says who did it and why"
                self._find("erased_without_act", text, tombstones[0].event_id)
        for act in acts:
            if act.id not in by_act and act.digest != tombstones_digest([]):
                text = f"what event {act.id} says was erased from the journal is not known any more"
                self._find("erased_without_act", text, act.id)

    def anchors(self, heads: Sequence[Head]) -> None:
        """Heads that somebody has kept elsewhere: each must still be in the chain."""
        last = self._before.number if self._before else 0
        for head in heads:
            found = self._hashes.get(head.number)
            if found is None:
                text = (
                    f"seal {head.number} was anchored, and is not there: the chain ends at {last}. "
                    "It was cut off, or this is an older copy of the database"
                )
                self._find("anchor_missing", text, seal=head.number)
            elif found != head.hash:
                text = f"seal {head.number} is not the one that was anchored"
                self._find("anchor_differs", text, seal=head.number)

    def _find(
        self, what: What, text: str, event: int | None = None, seal: int | None = None
    ) -> None:
        self.findings.append(Finding(what, text, event, seal))


def _missing(first: int, last: int) -> str:
    return f"seal {first} was removed" if first == last else f"seals {first} to {last} were removed"
