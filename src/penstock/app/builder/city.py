"""A job over the local city: servers on loopback that stand for sites, lists, a search and more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from penstock.app.builder.job import FILE_NAME
from penstock.builder.city.project import source_of, write_lists
from penstock.builder.city.server import City
from penstock.builder.city.world import World
from penstock.errors import UsageError

SEED = 7
# A company takes about eleven requests and five kilobytes.
REQUESTS, BYTES = 40, 400_000


@contextmanager
def serving_city(folder: Path, companies: int, profile: str = "standard") -> Iterator[Path]:
    """Serve a city, and have its job in the folder: answers with the job's file."""
    with City(World(SEED, companies)) as city:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_lists(city, folder)
            job = folder / FILE_NAME
            job.write_bytes(msgspec.json.format(_job(city, companies, profile), indent=2) + b"\n")
        except OSError as error:
            raise UsageError(f"{folder} can't be written to: {error.strerror}") from None
        yield job


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
