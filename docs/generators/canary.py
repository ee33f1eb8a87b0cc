"""docs/canary.md: how often the guardrails stop a canary, on simulated pages of known rates.

It takes some minutes, so `make reference` leaves it out: python -m docs.generators.canary
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.jobs.canary.guardrails import Limits, PageSample, judge, look_due

PAGE = Path(__file__).parents[1] / "canary.md"
SEED = 20261119
# Canary pages of one canary, and the pages of the control beside each of them.
PAGES = 800
CONTROLS = 9
HEALTHY = 600
HARMFUL = 100


@dataclass(frozen=True)
class Release:
    """How a release performs a page."""

    failures: float = 0.02
    records: float = 4.0
    rejections: float = 0.05
    duplicates: float = 0.01
    quality: float = 0.80


CONTROL = Release()
HARM: dict[str, Release] = {
    "failures 2 % → 6 %": Release(failures=0.06),
    "failures 2 % → 10 %": Release(failures=0.10),
    "records per page 4 → 3": Release(records=3.0),
    "records per page 4 → 2": Release(records=2.0),
    "rejections 5 % → 15 %": Release(rejections=0.15),
    "duplicates 1 % → 6 %": Release(duplicates=0.06),
    "mean score 0.80 → 0.75": Release(quality=0.75),
}


def page() -> str:
    """The page as it is, with the figures in it measured again."""
    text = PAGE.read_text("utf-8")
    for name, table in TABLES.items():
        first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(first)
        text = f"{before}{first}\n{table()}\n{last}{rest.split(last)[1]}"
    return text


def stopped_at(canary: Release, chance: random.Random, most: int = PAGES) -> int | None:
    """At how many of its pages a canary is stopped; None if it never is."""
    limits, looks, pages = Limits(), 0, list[PageSample]()
    for number in range(1, most + 1):
        pages += _performed(canary, chance)
        if look_due(number, looks, limits.min_pages):
            looks += 1
            if judge(pages, limits, looks).crossed:
                return number
    return None


def _performed(canary: Release, chance: random.Random) -> Iterator[PageSample]:
    """One page of the canary and its share of the control's."""
    yield _sample(canary, chance, is_canary=True)
    for _ in range(CONTROLS):
        yield _sample(CONTROL, chance, is_canary=False)


def _sample(release: Release, chance: random.Random, *, is_canary: bool) -> PageSample:
    if chance.random() < release.failures:
        return PageSample(1, is_canary, has_failed=True)
    found = PageSample(1, is_canary)
    for _ in range(_poisson(release.records, chance)):
        if chance.random() < release.rejections:
            found.rejected += 1
            continue
        is_known = chance.random() < release.duplicates
        found.keys.add(f"known{chance.randrange(20)}" if is_known else f"{chance.random()}")
        found.scores += min(1.0, max(0.0, chance.gauss(release.quality, 0.1)))
        found.scored += 1
    return found


def _poisson(mean: float, chance: random.Random) -> int:
    number, product, least = 0, chance.random(), math.exp(-mean)
    while product > least:
        number += 1
        product *= chance.random()
    return number


def _false_stops() -> str:
    stops = sum(
        stopped_at(CONTROL, random.Random(f"{SEED} healthy {n}")) is not None
        for n in range(HEALTHY)
    )
    low, high = interval(stops, HEALTHY)
    return (
        f"Of {HEALTHY:,} simulated canaries that made no difference, with {PAGES} pages each and "
        f"{PAGES * CONTROLS:,} of the control, {stops} were stopped: {stops / HEALTHY:.1%} "
        f"(95 % interval {low:.1%} to {high:.1%}; `alpha` allows {Limits().alpha:.0%}).\n"
    )


def _power() -> str:
    rows = [
        "| harm | stopped | by 100 pages | by 400 pages | by 800 pages |\n|---|---|---|---|---|\n"
    ]
    for name, release in HARM.items():
        found = [stopped_at(release, random.Random(f"{SEED} {name} {n}")) for n in range(HARMFUL)]
        stops = sorted(at for at in found if at is not None)
        median = f"half of them by {stops[len(stops) // 2]} pages" if stops else "never"
        shares = [sum(at <= most for at in stops) / HARMFUL for most in (100, 400, 800)]
        rows.append(
            f"| {name} | {median} | " + " | ".join(f"{each:.0%}" for each in shares) + " |\n"
        )
    return "".join(rows)


def interval(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval for a share."""
    share, extra = hits / of, z * z / of
    middle = (share + extra / 2) / (1 + extra)
    half = z * math.sqrt(share * (1 - share) / of + extra / (4 * of)) / (1 + extra)
    return max(0.0, middle - half), middle + half


TABLES: dict[str, Callable[[], str]] = {"false stops": _false_stops, "power": _power}

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
