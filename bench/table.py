"""The lines of the tables, and how much of everything is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from bench.rounds import Measured

CLAIM_GROWTH = 1.5
MEMORY_MB = 150.0
MILLION = 1_000_000


@dataclass(frozen=True)
class Row:
    """A line of the table. `is_met` is None where the design names no target.

    `side` is the one of ours whose work it is, if its time says something.
    """

    work: str
    ours: str
    peer: str
    ratio: str
    target: str
    is_met: bool | None
    side: str = ""


@dataclass(frozen=True)
class Scale:
    """How much of everything: `--quick` only shows that it runs, `--large` adds the ten million.

    `--postgres-long` holds a snapshot for minutes instead of half a minute.
    """

    is_quick: bool = False
    is_large: bool = False
    is_postgres_long: bool = False

    def of(self, full: int, quick: int) -> int:
        return quick if self.is_quick else full


def rate_row(measured: Measured, ours: str, peer: str, least: float | None, work: str = "") -> Row:
    """How fast one side is beside another, and whether that is enough."""
    unit = measured.workload.unit
    ratio = measured.ratio(ours, peer)
    return Row(
        work=work or measured.workload.title,
        ours=f"{measured.rate(ours):,.0f} {unit}",
        peer=f"{peer}: {measured.rate(peer):,.0f} {unit}",
        ratio=f"{ratio:.2f} ×",
        target="" if least is None else f"≥ {least:g} ×",
        is_met=None if least is None else ratio >= least,
        side=ours,
    )


def figure_row(
    work: str, found: float, unit: str, most: float | None = None, peer: str = "", side: str = ""
) -> Row:
    """A figure without a ratio: the less the better where there is a target, and it is the most."""
    return Row(
        work=work,
        ours=f"{found:,.{_places(found)}f} {unit}",
        peer=peer,
        ratio="",
        target="" if most is None else f"≤ {most:g} {unit}",
        is_met=None if most is None else found <= most,
        side=side,
    )


def _places(found: float) -> int:
    return 0 if found >= 10 else 1 if found >= 1 else 2


def start_up_row(measured: Measured, side: str, work: str = "") -> Row:
    """What the speed of a command leaves out: the time until its worker claims the first job."""
    title = work or measured.workload.title
    return figure_row(
        f"{title}: start-up, left out above", measured.median(side, "start_up_s"), "s"
    )


def latency_row(measured: Measured, side: str, part: str, most_ms: float, work: str = "") -> Row:
    found = measured.median(side, part)
    return Row(
        work=f"{work or measured.workload.title}, {part[:3]}",
        ours=f"{found:.1f} ms",
        peer="",
        ratio="",
        target=f"≤ {most_ms:g} ms",
        is_met=found <= most_ms,
    )


def claim_rows(measured: Measured) -> list[Row]:
    """How a claim fares as the backlog grows, and what the longest one costs in memory."""
    first, *others = [side.name for side in measured.workload.sides]
    found = [
        _growth_row(measured, part, first, other)
        for other in others
        for part in ("p50_ms", "p99_ms")
    ]
    if queued(MILLION) in measured.results:
        found.append(_memory_row(measured))
    return found


def _growth_row(measured: Measured, part: str, few: str, many: str) -> Row:
    before, after = measured.median(few, part), measured.median(many, part)
    return Row(
        work=f"claim latency {part[:3]}, {few} → {many}",
        ours=f"{after:.2f} ms",
        peer=f"{few}: {before:.2f} ms",
        ratio=f"{after / before:.2f} ×",
        target=f"≤ {CLAIM_GROWTH:g} ×",
        is_met=after / before <= CLAIM_GROWTH,
    )


def _memory_row(measured: Measured) -> Row:
    rss = measured.median(queued(MILLION), "rss_mb")
    return Row(
        work="memory of the worker with 1 million queued jobs",
        ours=f"{rss:.0f} MB RSS",
        peer="",
        ratio="",
        target=f"≤ {MEMORY_MB:g} MB",
        is_met=rss <= MEMORY_MB,
    )


FIFTY = "50 sources"
# Within 1.5 times of the time that 50 sources take.
BY_SOURCES = 0.67


def sources_rows(measured: Measured) -> list[Row]:
    """The same work of fewer or more sources, beside fifty."""
    title = measured.workload.title
    others = [side.name for side in measured.workload.sides if side.name != FIFTY]
    return [
        *(rate_row(measured, name, FIFTY, BY_SOURCES, f"{title}, {name}") for name in others),
        *(start_up_row(measured, name, f"{title}, {name}") for name in others),
    ]


def sources_named(count: int) -> str:
    return f"{count:,} source{'s' if count > 1 else ''}"


def queued(backlog: int) -> str:
    if backlog >= MILLION:
        return f"{backlog // MILLION} million queued"
    return f"{backlog // 1000} thousand queued"
