"""Everything that one attempt wants remembered: the list of all effects.

To add an effect, write its class in a file of its own and name it here, beside its field.
"""

# ruff: noqa: RUF009  what stands beside a field is a dataclasses.field

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from penstock.jobs.effects.checkpoints import CheckpointsEffect, Mark
from penstock.jobs.effects.children import ChildrenEffect
from penstock.jobs.effects.coverage import CoverageEffect, Covered
from penstock.jobs.effects.effect import Effect, Repeatable, Wordless
from penstock.jobs.effects.endings import DroppedEffect, ForgetEffect
from penstock.jobs.effects.fields import FieldsEffect
from penstock.jobs.effects.findings import FindingsEffect
from penstock.jobs.effects.moments import MomentsEffect
from penstock.jobs.effects.notes import Note, NotesEffect
from penstock.jobs.effects.pages import Announced, Extracted, PagesEffect
from penstock.jobs.effects.proposals import ProposalsEffect, Proposed
from penstock.jobs.effects.records import Basis, RecordsEffect, Save
from penstock.jobs.effects.rejections import Rejection, RejectionsEffect
from penstock.jobs.effects.samples import Sample, SamplesEffect
from penstock.jobs.effects.schema import SchemaEffect
from penstock.jobs.effects.signals import Raised, SignalsEffect
from penstock.jobs.effects.spending import SpendingEffect
from penstock.jobs.job import NewJob
from penstock.settings.budget import Bound

if TYPE_CHECKING:
    from penstock.settings.secrets import Masker

# What one transaction may hold of effects: it takes a second or two, and no beat of its worker is late.
MOST_EFFECTS = 200_000
MOST_EFFECT_BYTES = 128_000_000


def many(effect: type[Effect], *, chunked: bool = False, weighed: bool = False) -> Any:
    """A list. `chunked`: how many there are decides when a chunk of a long attempt is written, and how
    heavy a transaction is; `weighed`: only the latter."""
    return field(
        default_factory=list,
        metadata={"effect": effect, "chunked": chunked, "weighed": chunked or weighed},
    )


def tally(effect: type[Effect]) -> Any:
    """Amounts by name."""
    return field(default_factory=dict, metadata={"effect": effect})


def flag(effect: type[Effect]) -> Any:
    return field(default=False, metadata={"effect": effect})


def number(effect: type[Effect]) -> Any:
    return field(default=0, metadata={"effect": effect})


@dataclass(init=False)
class Effects:
    """Everything an attempt buffers until the transaction that settles it.

    Effects are written in the order of their fields, which is the order of the locks that they take.
    A list or a tally is made when it is first asked for: most attempts have few of them, and a worker
    holds thousands of attempts.
    """

    notes: list[Note] = many(NotesEffect, chunked=True)
    children: list[NewJob] = many(ChildrenEffect, chunked=True)
    saves: list[Save] = many(RecordsEffect, chunked=True)
    # What some of these were based on.
    bases: list[Basis] = many(RecordsEffect)
    # How many records this attempt has saved before, in commits of its own.
    saved_before: int = number(RecordsEffect)
    marks: list[Mark] = many(CheckpointsEffect, chunked=True)
    covered: list[Covered] = many(CoverageEffect)
    # What it cost, by measure: requests, bytes, seconds, money.
    spent: dict[str, float] = tally(SpendingEffect)
    # What of that counts against which budgets now, because no request reserved it.
    charges: list[tuple[Bound, float]] = many(SpendingEffect)
    # How long its requests took: how many there were by the bound of their bucket, and under "" the seconds.
    latencies: dict[str, float] = tally(SpendingEffect)
    signals: list[Raised] = many(SignalsEffect, weighed=True)
    # Sources that were discovered; a person decides about them.
    proposals: list[Proposed] = many(ProposalsEffect, weighed=True)
    rejections: list[Rejection] = many(RejectionsEffect, chunked=True)
    # Moments around which the source is to be looked at more often.
    moments: list[float] = many(MomentsEffect, chunked=True)
    # What is known of the source's shape was found to be true.
    is_schema_verified: bool = flag(SchemaEffect)
    # What a probe has seen, by name; see `Seen` in jobs/probe.py.
    probed: dict[str, int] = tally(FindingsEffect)
    # How often each kind of value was in each field of what was saved; see `parts_of` in fields.py.
    fields: dict[str, int] = tally(FieldsEffect)
    announced: list[Announced] = many(PagesEffect, chunked=True)
    extracted: list[Extracted] = many(PagesEffect)
    # Addresses of pages that are no more: what was known of them is dropped.
    gone: list[str] = many(PagesEffect)
    # What a canary's guardrails are told of this job.
    samples: list[Sample] = many(SamplesEffect)
    # A candidate of which nothing became: a step returned None.
    is_dropped: bool = flag(DroppedEffect)
    # The attempt has come to an end that it wanted: what the next one says is new, however equal it is.
    forgets: bool = flag(ForgetEffect)

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        make = _MAKES.get(name)
        if make is None:
            raise AttributeError(f"effects have no {name!r}")
        # Another thread may ask for it at the same time: both get the same.
        return self.__dict__.setdefault(name, make())

    def __bool__(self) -> bool:
        # Most attempts have nothing. A copy: a step that was given up may still be at it, in its thread.
        return bool(self.__dict__) and any(list(self.__dict__.values()))

    @property
    def places(self) -> set[int]:
        """Of which effects it has something: their places in ALL_EFFECTS."""
        if not self.__dict__:
            return set()
        return {_PLACES[name] for name, value in self.__dict__.items() if value}

    @property
    def is_conditional(self) -> bool:
        """Whether something that others write decides if it is written at all."""
        return bool(self.__dict__.get("bases"))

    @property
    def size(self) -> int:
        return self._entries(_CHUNKED)

    @property
    def weight(self) -> int:
        """How much of a transaction's time it takes, where MOST_EFFECTS is as much as there is."""
        if not self.__dict__:
            return 0
        entries = self._entries(_WEIGHED)
        if entries < 1000:
            return entries
        written = sum([effect.weigh(self) for effect in ALL_EFFECTS])
        return max(entries, written * MOST_EFFECTS // MOST_EFFECT_BYTES)

    def take(self) -> Effects:
        """Hand over what is buffered and start afresh."""
        taken, mine = Effects(), self.__dict__
        for name in list(mine):
            taken.__dict__[name] = mine.pop(name)
        return taken

    def pour(self, others: Effects) -> None:
        """Take over what others brought; they are left empty."""
        mine, theirs = self.__dict__, others.__dict__
        for name in list(theirs):
            brought, known = theirs.pop(name), mine.get(name)
            if type(known) is list:
                known += brought  # so it is with each record that a run-level step saves
            elif brought:
                setattr(self, name, _together(getattr(self, name), brought))

    def _entries(self, names: frozenset[str]) -> int:
        return sum([len(value) for name, value in self.__dict__.items() if name in names])


def _together(mine: Any, theirs: Any) -> Any:
    match mine:
        case bool():
            return mine or theirs
        case dict():
            for key, amount in theirs.items():
                mine[key] = mine.get(key, 0) + amount
            return mine
    mine += theirs
    return mine


_FIELDS = fields(Effects)
# Each effect once, in the order in which they are written, and for each field the place of its effect there.
_CLASSES = tuple(dict.fromkeys(each.metadata["effect"] for each in _FIELDS))
ALL_EFFECTS: tuple[Effect, ...] = tuple(effect() for effect in _CLASSES)
_PLACES = {each.name: _CLASSES.index(each.metadata["effect"]) for each in _FIELDS}
REPEATABLE = tuple(each for each in ALL_EFFECTS if isinstance(each, Repeatable))
_SPEAKING = tuple(each for each in ALL_EFFECTS if not isinstance(each, Wordless))
# What makes the empty value of each field that is not a plain number or flag.
_MAKES: dict[str, Callable[[], Any]] = {
    each.name: each.default_factory for each in _FIELDS if each.default_factory is not MISSING
}
_CHUNKED = frozenset(each.name for each in _FIELDS if each.metadata.get("chunked"))
_WEIGHED = frozenset(each.name for each in _FIELDS if each.metadata.get("weighed"))


def has_children(effects: Effects) -> bool:
    """Asked of every end: it makes no list where there is none."""
    return bool(effects.__dict__.get("children"))


def saved_bytes(effects: Effects) -> int:
    """How much its records hold; asked of every page that ended well."""
    return sum([len(save.data) for save in effects.__dict__.get("saves", ())])


def stage(effects: Effects, *, is_redrive: bool = False) -> None:
    """What an attempt of a replay may leave behind: records and pages on the stage, and nothing live.

    Those of a redrive are meant to be saved: it was asked for because something is mended.
    """
    for effect in ALL_EFFECTS:
        effect.stage(effects, is_redrive=is_redrive)


def dry(effects: Effects) -> Effects:
    """What of an attempt's effects a probe has: its children, what it says, what it cost and what it saw."""
    dried = Effects()
    for effect in ALL_EFFECTS:
        effect.dry(effects, dried)
    return dried


def uncommitted(effects: Effects) -> Effects:
    """What is left of effects that are not committed."""
    left = Effects()
    for effect in ALL_EFFECTS:
        effect.outlast(effects, left)
    return left


def redact(effects: Effects, masker: Masker) -> None:
    """Mask secrets in what effects say to people."""
    if not effects:
        return
    for effect in _SPEAKING:
        effect.redact(effects, masker)
