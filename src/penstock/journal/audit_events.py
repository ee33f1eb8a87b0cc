"""Events about what was erased."""

from __future__ import annotations

from typing import ClassVar

from penstock.counting import count
from penstock.journal.event import Event, with_reason


class RecordForgotten(Event, frozen=True, omit_defaults=True):
    """A person had everything erased that was stored under one key of a source.

    The key itself is not said. `tombstones` is the digest of the hashes of the `events` of the journal out of
    which it was erased.
    """

    kind: ClassVar[str] = "record.forgotten"
    by: ClassVar[str] = "an operator"

    records: int = 0
    versions: int = 0
    snapshots: int = 0
    jobs: int = 0
    rejects: int = 0
    log_lines: int = 0
    events: int = 0
    texts: int = 0
    tombstones: str = ""
    reason: str = ""

    def sentence(self) -> str:
        found = (
            (self.records, "record"),
            (self.versions, "version"),
            (self.snapshots, "snapshot"),
            (self.jobs, "job"),
            (self.rejects, "reject"),
            (self.log_lines, "log line"),
            (self.events, "event"),
            (self.texts, "text"),
        )
        said = ", ".join(count(number, noun) for number, noun in found if number)
        return with_reason(said, self.reason)


class RecordsExported(Event, frozen=True, omit_defaults=True):
    """A person had records written to a file or a bucket; `private` if those of private sources, too."""

    kind: ClassVar[str] = "records.exported"
    by: ClassVar[str] = "an operator"

    collection: str
    format: str
    to: str
    records: int = 0
    deletions: int = 0
    cursor: str = ""
    since: str | None = None
    of_run: int | None = None
    private: bool = False

    def sentence(self) -> str:
        what = f"{count(self.records, 'record')} of {self.collection}"
        removed = f" and {count(self.deletions, 'deletion')}" if self.deletions else ""
        private = ", private sources included" if self.private else ""
        return f"{what}{removed} to {self.to}{private}"


EVENTS = (
    RecordForgotten,
    RecordsExported,
)
