"""The reference of events, `docs/events.md`, from the registry: python -m penstock.journal.reference"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby

import msgspec

from penstock.journal.event import Event
from penstock.journal.registry import EVENTS, RENAMED

HEAD = """\
# Events

<!-- Written by `make reference` from the registry (src/penstock/journal); a test holds it equal. -->

Every change in Penstock writes an event to the journal, in the transaction that makes the change. An event is
data: `penstock events --json` prints it. The sentence that `penstock events` shows (`detail` in JSON) is
rendered from the data.

| field | what it is |
|---|---|
| `event` | the number of the event; later events have higher numbers |
| `at` | the time, in UTC |
| `kind` | what happened: one of the kinds below |
| `actor` | who did it: an operator, a worker, `scheduler`, `upkeep`, `clock`, `hooks` or `penstock` |
| `source`, `run`, `job`, `attempt` | what it is about; `null` where it is about none |
| `worker` | the worker that it is about, or `null` |
| `origin` | `cli`, `python`, `api`, `dashboard`, `sql`, `schedule`, `leader`; `null` for workers |
| `data` | an object with the fields that are listed below for its kind; empty fields are left out |
| `detail` | the sentence, for a person; its words may change between versions: programs read `data` |

Select events by their fields: `--kind job` (all kinds of a noun), `--source`, `--run`, `--job`, and `--where`
for any field; you can repeat it:

```console
$ penstock events --where data.host=acme.com
$ penstock events --kind job.retry_scheduled --where data.reason=network --where worker=host-1-a1b2c3
```

An event that an older version wrote as a sentence has the data that can be derived from it; where none can,
`data` has only `text`, the sentence.
"""

RENAMED_HEAD = """\
## Renamed kinds

These kinds had another name before. Events that were written under the old name are listed under the new
one. In this release, `--kind` and `--where kind=` still accept the old name.
"""


def page() -> str:
    """The whole reference."""
    return "\n".join([HEAD, *_sections(), *_renamed()]).rstrip() + "\n"


def _sections() -> Iterator[str]:
    nouns = sorted(EVENTS, key=_noun)
    for noun, events in groupby(nouns, key=_noun):
        yield f"## {noun}\n"
        yield "| kind | what happened | actor | data |"
        yield "|---|---|---|---|"
        yield from (_line(each) for each in events)
        yield ""


def _renamed() -> Iterator[str]:
    yield RENAMED_HEAD
    yield "| old name | name |"
    yield "|---|---|"
    yield from (f"| `{old}` | `{new}` |" for old, new in sorted(RENAMED.items()))


def _line(event: type[Event]) -> str:
    about = " ".join((event.__doc__ or "").split())
    return f"| `{event.kind}` | {about} | {event.by} | {_data(event)} |"


def _data(event: type[Event]) -> str:
    return ", ".join(f"`{f.name}` {_type(f)}" for f in msgspec.structs.fields(event))


def _type(field: msgspec.structs.FieldInfo) -> str:
    name = str(msgspec.json.schema(field.type).get("type", ""))
    usual = {"string": "text", "integer": "number", "number": "number"}
    return usual.get(name, "number" if "int" in str(field.type) else "text")


def _noun(event: type[Event]) -> str:
    return event.kind.partition(".")[0]


if __name__ == "__main__":
    sys.stdout.write(page())
