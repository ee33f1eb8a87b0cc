"""A job over the local city: servers on loopback that stand for sites, lists, a search and more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.app.builder.job import FILE_NAME
from penstock.app.views.builder import DatasetTruthView, FieldTruthView
from penstock.builder.city.evaluation import evaluate
from penstock.builder.city.project import source_of, write_lists
from penstock.builder.city.server import City
from penstock.builder.city.world import World
from penstock.errors import UsageError

SEED = 7
DATASET = "package/companies.jsonl"
# A company takes about eleven requests and five kilobytes.
REQUESTS, BYTES = 40, 400_000


@dataclass(frozen=True, slots=True)
class ServedCity:
    """A city that is served, and the file of the job that builds its dataset."""

    job: Path
    city: City

    def truth_of(self, outdir: Path) -> DatasetTruthView | None:
        """The dataset that was built there, beside what is true of the city; None if there is none."""
        try:
            lines = (outdir / DATASET).read_bytes().splitlines()
        except FileNotFoundError:
            return None
        found = evaluate([msgspec.json.decode(line) for line in lines], self.city.world.truth)
        return DatasetTruthView(
            companies=found.companies,
            expected=found.expected,
            duplicates=found.duplicates,
            unknown=found.unknown,
            precision=found.precision,
            recall=found.recall,
            coverage=found.coverage,
            fields=[
                FieldTruthView(field=name, precision=each.precision, recall=each.recall)
                for name, each in found.fields.items()
            ],
        )


@contextmanager
def serving_city(folder: Path, companies: int, profile: str = "standard") -> Iterator[ServedCity]:
    """Serve a city, and have its job in the folder."""
    with City(World(SEED, companies)) as city:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_lists(city, folder)
            job = folder / FILE_NAME
            job.write_bytes(msgspec.json.format(_job(city, companies, profile), indent=2) + b"\n")
        except OSError as error:
            raise UsageError(f"{folder} can't be written to: {error.strerror}") from None
        yield ServedCity(job, city)


def _job(city: City, companies: int, profile: str) -> bytes:
    source = source_of(city, profile=profile)
    made = {
        "name": "city",
        "profile": profile,
        **source["params"],
        "budgets": {
            "max_http_requests": REQUESTS * companies,
            "max_http_bytes": BYTES * companies,
        },
        "kpi_targets": {"min_quality_score": 75, "max_dup_pct": 1.5},
        "source": {"limits": source["limits"], "fetch": source["fetch"]},
    }
    return msgspec.json.encode(made)
