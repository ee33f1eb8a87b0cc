"""Evaluation: how much of the truth a dataset has found, and how much of it is true."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec
from rapidfuzz import fuzz

from penstock.builder.company import Company
from penstock.builder.normalize.names import name_key
from penstock.builder.normalize.places import street_key

FIELDS = (
    "name",
    "street",
    "city",
    "postcode",
    "region",
    "country",
    "phone",
    "email",
    "domain",
    "lat",
)
# Half a kilometre.
NEAR_DEGREES = 0.005


class FieldFigures(msgspec.Struct, frozen=True):
    """Of one field: how much of what is said is true, and how much of what is true is said."""

    precision: float
    recall: float


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset beside the truth. Shares from 0 to 1."""

    companies: int
    expected: int
    # Companies that are true and found once; two for one count once.
    matched: int
    duplicates: int
    unknown: int
    precision: float
    recall: float
    # Of all values that are true, how many the dataset has.
    coverage: float
    fields: dict[str, FieldFigures]

    def lines(self) -> list[str]:
        """The figures as text, for a terminal."""
        head = (
            f"precision {self.precision:.3f}  recall {self.recall:.3f}  coverage {self.coverage:.3f}  "
            f"({self.matched} of {self.expected} found, {self.duplicates} twice, {self.unknown} unknown)"
        )
        each = [
            f"  {name:9} precision {f.precision:.3f}  recall {f.recall:.3f}"
            for name, f in self.fields.items()
        ]
        return [head, *each]


def evaluate(dataset: Sequence[Company], truth: Sequence[Company]) -> Evaluation:
    """Compare. A company of the dataset is the one of the truth that shares most of what identifies it."""
    found = _assigned(dataset, truth)
    partners = {number: at for at, number in reversed(found.items())}
    said, true, right = Counter[str](), Counter[str](), Counter[str]()
    for number, expected in enumerate(truth):
        company = dataset[partners[number]] if number in partners else {}
        for field in FIELDS:
            said[field] += company.get(field) is not None
            true[field] += expected.get(field) is not None
            right[field] += is_right(field, company, expected)
    matched = len(partners)
    return Evaluation(
        companies=len(dataset),
        expected=len(truth),
        matched=matched,
        duplicates=len(found) - matched,
        unknown=len(dataset) - len(found),
        precision=_share(matched, len(dataset)),
        recall=_share(matched, len(truth)),
        coverage=_share(right.total(), true.total()),
        fields={
            field: FieldFigures(
                _share(right[field], said[field]), _share(right[field], true[field])
            )
            for field in FIELDS
        },
    )


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 1.0


def _assigned(dataset: Sequence[Company], truth: Sequence[Company]) -> dict[int, int]:
    """For each place in the dataset the number of its company in the truth; none for strangers."""
    holders: dict[str, set[int]] = defaultdict(set)
    for number, expected in enumerate(truth):
        for key in _keys(expected):
            holders[key].add(number)
    found = {}
    for at, company in enumerate(dataset):
        votes = Counter(number for key in _keys(company) for number in holders.get(key, ()))
        likely = [number for number, count in votes.items() if _is_named(company, truth[number])]
        if likely:
            found[at] = max(likely, key=lambda number: (votes[number], -number))
    return found


def _keys(company: Company) -> Iterator[str]:
    for field in ("legal_id", "phone", "domain", "email"):
        if company.get(field):
            yield f"{field} {company[field]}"
    if company.get("postcode"):
        yield f"place {company['postcode']} {street_key(company.get('street') or '')}"
        yield f"name {company['postcode'][:3]} {name_key(company['name'])}"
    yield f"name {name_key(company['name'])}"


def _is_named(company: Company, expected: Company) -> bool:
    return fuzz.token_sort_ratio(name_key(company["name"]), name_key(expected["name"])) >= 75


def is_right(field: str, company: Company, expected: Company) -> bool:
    """Whether a value is the true one, in whatever spelling a reader would take for it."""
    value, true = company.get(field), expected.get(field)
    if value is None or true is None:
        return False
    if field == "name":
        return name_key(value) == name_key(true)
    if field == "street":
        return street_key(value) == street_key(true)
    if field == "postcode":
        return bool(value[:5] == true[:5])
    if field == "lat":
        lon, true_lon = company.get("lon"), expected["lon"]
        return lon is not None and max(abs(value - true), abs(lon - true_lon)) <= NEAR_DEGREES
    return bool(value == true)
