"""Two pictures: how a claim fares as the backlog grows, and throughput as sources are added."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from bench.rounds import Measured
from bench.workloads import points


def draw(measured: list[Measured], folder: Path) -> None:
    """Draw what was measured; a workload that was not leaves its picture as it is."""
    for each in measured:
        if each.workload.name == "claims":
            lines = {"p50": points(each, "p50_ms"), "p99": points(each, "p99_ms")}
            _plot(folder / "bench-claim-latency.png", lines, "jobs queued", "one turn, ms")
        if each.workload.name == "sources":
            lines = {"no-op jobs": points(each, "rate")}
            _plot(folder / "bench-throughput-by-sources.png", lines, "sources", "jobs a second")


def _plot(file: Path, lines: dict[str, list[tuple[int, float]]], x: str, y: str) -> None:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for label, found in lines.items():
        axes.plot(*zip(*found, strict=True), marker="o", label=label)
    axes.set(xscale="log", xlabel=x, ylabel=y, ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(lines) > 1:
        axes.legend(frameon=False)
    # No date and no version inside the file: the same figures give the same bytes.
    figure.savefig(file, dpi=120, metadata={"Software": None})
