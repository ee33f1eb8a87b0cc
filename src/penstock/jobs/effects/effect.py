"""An effect: one kind of thing that an attempt wants remembered, and all that is done with it.

Each effect is a class in a file of its own. It owns one or more fields of `Effects` and knows how they are
staged for a replay, dried for a probe, redacted and written. `Effects` names it once, beside its field.
A child process sends effects as MessagePack, so their payloads are Structs or plain values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from penstock.jobs.effects.checkpoints import Mark
    from penstock.jobs.effects.coverage import Covered
    from penstock.jobs.effects.effects import Effects
    from penstock.jobs.effects.proposals import Proposed
    from penstock.jobs.effects.records import Save
    from penstock.jobs.effects.rejections import Rejection
    from penstock.jobs.effects.samples import Sample
    from penstock.jobs.effects.signals import Raised
    from penstock.jobs.job import NewJob, Owned
    from penstock.jobs.outcome import Flush, Settlement
    from penstock.jobs.repeats import Sayings
    from penstock.settings.budget import Bound
    from penstock.settings.secrets import Masker

# The end of an attempt, or a part of it, with the job that the attempt still owns.
Ended: TypeAlias = "tuple[Settlement | Flush, Owned]"


class Transaction(Protocol):
    """What the transaction that settles attempts can write for them. The store implements it.

    An effect that a new table holds adds a verb here; one that is counted, journaled or raised needs none.
    """

    def is_repeat(self, job: Owned, key: str) -> bool:
        """Whether an earlier attempt of this job has committed the same."""
        ...

    def note(self, job: Owned, attempt: int, text: str) -> None:
        """Write a line into the journal."""
        ...

    def count(self, run_id: int, name: str, by: float) -> None: ...

    def measure_fetches(self, run_id: int, latencies: Mapping[str, float]) -> None: ...

    def add_children(self, children: Sequence[tuple[Owned, NewJob]]) -> None: ...

    def save_records(self, saves: Sequence[tuple[Owned, Save]]) -> None: ...

    def stage_records(self, saves: Sequence[tuple[Owned, Save]]) -> None: ...

    def move_checkpoints(self, marks: Sequence[tuple[Owned, Mark]]) -> None: ...

    def cover(self, covered: Sequence[tuple[Owned, Covered]]) -> None: ...

    def charge(self, charges: Sequence[tuple[Bound, float]]) -> None: ...

    def raise_signals(self, raised: Sequence[tuple[Owned, Raised]]) -> None: ...

    def propose_sources(self, found: Sequence[tuple[Owned, Proposed]]) -> None: ...

    def add_rejects(self, rejections: Sequence[tuple[Owned, Rejection]]) -> None: ...

    def announce_moments(self, moments: Sequence[tuple[Owned, float]]) -> None: ...

    def verify_schemas(self, jobs: Sequence[Owned]) -> None: ...

    def add_findings(self, found: Mapping[int, Mapping[str, int]]) -> None:
        """What probes have seen, by run."""
        ...

    def count_fields(self, found: Mapping[tuple[int, int], Counter[str]]) -> None:
        """How often each kind of value was in each field, by run and source."""
        ...

    def note_pages(self, visits: Sequence[tuple[Owned, Effects]]) -> None: ...

    def add_samples(self, samples: Sequence[tuple[Owned, Sample]]) -> None:
        """What came of jobs that a canary's guardrails measure."""
        ...


class Effect(ABC):
    """One kind of effect. It has no state: what it is about is in the `Effects` that it is given."""

    @abstractmethod
    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        """Change it to what an attempt of a replay may leave behind: staged, or nothing.

        What a redrive saves is meant to be saved.
        """

    @abstractmethod
    def dry(self, effects: Effects, dried: Effects) -> None:
        """Hand over what of it a probe keeps. What is not handed over does not happen."""

    @abstractmethod
    def redact(self, effects: Effects, masker: Masker) -> None:
        """Mask secrets in what it says to people, then cut it to its length."""

    @abstractmethod
    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        """Write it for all these attempts at once, in their order."""

    def outlast(self, effects: Effects, left: Effects) -> None:  # noqa: B027
        """Hand over what counts although the attempt does not commit: of most effects, nothing."""

    def weigh(self, effects: Effects) -> int:
        """How many bytes of payload it writes, if that can be many."""
        return 0


class Wordless(Effect):
    """An effect that says nothing to people: there is nothing to redact."""

    def redact(self, effects: Effects, masker: Masker) -> None:
        pass


class Live(Wordless):
    """An effect of live runs alone: a replay and a probe leave nothing of it."""

    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        self.clear(effects)

    def dry(self, effects: Effects, dried: Effects) -> None:
        pass

    @abstractmethod
    def clear(self, effects: Effects) -> None: ...


class Repeatable(Effect):
    """An effect without a key of its own: an attempt that starts over says the same again.

    Its payload has a `key` that is the same in every attempt, so that it is written once.
    """

    @abstractmethod
    def key(self, effects: Effects, sayings: Sayings) -> None:
        """Give each its key."""

    @abstractmethod
    def keys(self, effects: Effects) -> Iterator[str]: ...
