"""The pictures: a claim as the backlog grows, throughput as sources and workers are added, and over time."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from bench.on_postgres import rates_over_time
from bench.rounds import Measured
from bench.workloads import points

Lines = dict[str, list[tuple[float, float]]]


def draw(measured: list[Measured], folder: Path) -> None:
    """Draw what was measured; a workload that was not leaves its picture as it is."""
    for each in measured:
        match each.workload.name:
            case "claims" | "pg-claims" as name:
                lines: Lines = {"p50": points(each, "p50_ms"), "p99": points(each, "p99_ms")}
                where = "-on-postgres" if name == "pg-claims" else ""
                file = folder / f"bench-claim-latency{where}.png"
                plot(file, lines, "jobs queued", "one turn, ms")
            case "sources":
                lines = {"no-op jobs": points(each, "rate")}
                file = folder / "bench-throughput-by-sources.png"
                plot(file, lines, "sources", "jobs a second")
            case "pg-held":
                file = folder / "bench-held-snapshot-on-postgres.png"
                plot(file, rates_over_time(each), "seconds", "jobs a second", scale="linear")


def plot(file: Path, lines: Lines, x: str, y: str, scale: str = "log") -> None:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for label, found in lines.items():
        axes.plot(*zip(*found, strict=True), marker="o" if scale == "log" else None, label=label)
    axes.set(xscale=scale, xlabel=x, ylabel=y, ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(lines) > 1:
        axes.legend(frameon=False)
    # No date and no version inside the file: the same figures give the same bytes.
    figure.savefig(file, dpi=120, metadata={"Software": None})
