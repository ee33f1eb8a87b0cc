"""Fields: how often each kind of value was in each field of what was saved."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.jobs.effects.effect import Ended, Live, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.jobs.effects.effects import Effects

_BETWEEN = "\x1f"
MOST_FIELDS = 200
LONGEST_NAME = 100
# As storable text is: what no database can hold in a name is not counted apart.
_RECORDS = ""


class FieldsEffect(Live):
    def clear(self, effects: Effects) -> None:
        effects.fields = {}

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        found: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
        for end, job in ended:
            found[job.run_id, job.source_id].update(end.effects.fields)
        transaction.count_fields(found)


def add_fields(
    counts: dict[str, int],
    collection: str,
    data: Mapping[str, Any],
    kind_of: Callable[[Any], str],
) -> None:
    """Count the fields of one record, and of the objects in it: a row is the `data` of its document."""
    key = f"{collection}{_BETWEEN}{_RECORDS}{_BETWEEN}object"
    counts[key] = counts.get(key, 0) + 1
    for name, value in islice(_fields(data), MOST_FIELDS):
        key = f"{collection}{_BETWEEN}{name[:LONGEST_NAME]}{_BETWEEN}{kind_of(value)}"
        counts[key] = counts.get(key, 0) + 1


def _fields(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        yield name, value
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", each) for inner, each in value.items())


def with_hashed_names(counts: Mapping[str, int], hashed: Callable[[str], str]) -> dict[str, int]:
    """The same counts, with the names of fields hidden: those of a private source may be what it holds."""
    found: Counter[str] = Counter()
    for key, number in counts.items():
        collection, field, kind = parts_of(key)
        found[_BETWEEN.join((collection, field and hashed(field), kind))] += number
    return dict(found)


def parts_of(key: str) -> tuple[str, str, str]:
    """Collection, field and kind."""
    collection, _, rest = key.partition(_BETWEEN)
    field, _, kind = rest.rpartition(_BETWEEN)
    return collection, field, kind
