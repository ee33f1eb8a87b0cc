"""The text that Prometheus scrapes, in its own format or as OpenMetrics.

The library's writer makes an object of each sample and looks at each name and label again: with 1,000
sources that took a second. Here a line is put together from pieces that are made once. A test holds the two
to the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.utils import floatToGoString

from penstock.metrics import buckets
from penstock.metrics.facts import Facts
from penstock.metrics.family import Family, Scrape
from penstock.metrics.registry import FAMILIES

FORMATS = ("prometheus", "openmetrics")
INFO_HELP = "1, with the version, the project and the kind of database as labels."
# Below this, numbers look the same in Go and in Python.
PLAIN_BELOW = 1_000_000.0
BOUND = "le"


def text_of(facts: Facts, about: Mapping[str, str], most_sources: int, form: str) -> str:
    """All families. `about` are the labels of `penstock_info`: version, project, database."""
    is_open = form == "openmetrics"
    scrape, escaped = Scrape(facts, most_sources), _Escaped()
    labels = _labels(list(about), escaped)(list(about.values()))
    lines = [*_info_head(is_open), f"penstock_info{labels} 1.0\n"]
    for family in FAMILIES.values():
        lines += _head(family, is_open)
        lines += _WRITERS[family.kind](family, family.samples(scrape), escaped)
    if is_open:
        lines.append("# EOF\n")
    return "".join(lines)


class _Escaped(dict[str, str]):
    """The values of labels as they are written, each made once."""

    def __missing__(self, value: str) -> str:
        made = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
        self[value] = made
        return made


def _number(value: float) -> str:
    if 0.0 <= value < PLAIN_BELOW:
        return repr(float(value))
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


def _info_head(is_open: bool) -> tuple[str, str]:
    name, kind = ("penstock", "info") if is_open else ("penstock_info", "gauge")
    return f"# HELP {name} {INFO_HELP}\n", f"# TYPE {name} {kind}\n"


def _head(family: Family, is_open: bool) -> tuple[str, str]:
    about = family.help.replace("\\", r"\\").replace("\n", r"\n")
    if is_open:
        about = about.replace('"', r"\"")
    name = family.name if is_open else family.shown_name
    return f"# HELP {name} {about}\n", f"# TYPE {name} {family.kind}\n"


def _labels(names: Sequence[str], escaped: _Escaped) -> Callable[[Sequence[str]], str]:
    """What writes the values of these labels: in the order of their names."""
    if not names:
        return lambda values: ""
    if len(names) == 1:
        [name] = names
        return lambda values: f'{{{name}="{escaped[values[0]]}"}}'
    places = sorted((name, place) for place, name in enumerate(names))
    return lambda values: _braced(f'{name}="{escaped[values[at]]}"' for name, at in places)


def _braced(labels: Iterable[str]) -> str:
    return f"{{{','.join(labels)}}}"


def _plain(family: Family, samples: Iterable[Any], escaped: _Escaped) -> Iterator[str]:
    name, labels = family.shown_name, _labels(family.labels, escaped)
    for values, value in samples:
        yield f"{name}{labels(values)} {_number(value)}\n"


def _summary(family: Family, samples: Iterable[Any], escaped: _Escaped) -> Iterator[str]:
    name, labels = family.name, _labels(family.labels, escaped)
    for values, count, total in samples:
        where = labels(values)
        yield f"{name}_count{where} {_number(count)}\n{name}_sum{where} {_number(total)}\n"


def _histogram(family: Family, samples: Iterable[Any], escaped: _Escaped) -> Iterator[str]:
    """Each bucket with all that is below it, too; its bound as a float is written."""
    name, labels = family.name, _labels(family.labels, escaped)
    bounds = [
        (label, label if label == buckets.INFINITE else str(float(label)))
        for label in buckets.labels(family.buckets)
    ]
    for values, counts, total in samples:
        where, below = labels(values), 0.0
        # The name of the bound comes first of all labels that a histogram has.
        others = f",{where[1:]}" if where else "}"
        for label, bound in bounds:
            below += counts.get(label, 0.0)
            yield f'{name}_bucket{{{BOUND}="{bound}"{others} {_number(below)}\n'
        yield f"{name}_count{where} {_number(below)}\n{name}_sum{where} {_number(total)}\n"


_WRITERS: dict[str, Callable[[Family, Iterable[Any], _Escaped], Iterator[str]]] = {
    "counter": _plain,
    "gauge": _plain,
    "histogram": _histogram,
    "summary": _summary,
}
