"""What it ran on: enough to judge the figures by, nothing that says whose machine it was."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
import tempfile
import time
from pathlib import Path

import apsw

from bench import postgres

PEERS = ("huey", "scrapy", "dlt", "aiohttp", "apsw", "procrastinate", "psycopg")


def facts(folder: Path) -> dict[str, str]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PEERS)
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": _processor(),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "SQLite of Penstock and bare apsw": apsw.sqlite_lib_version(),
        "SQLite of Huey, Scrapy and dlt": sqlite3.sqlite_version,
        "Postgres": postgres.facts(),
        "packages": versions,
        **moment("when it began", folder),
    }


def moment(when: str, folder: Path) -> dict[str, str]:
    """How busy the machine is now: figures from a machine that does other things as well mislead."""
    return {
        f"one synced 4 KB write {when}": f"{sync_us(folder):.0f} µs",
        f"load {when}": f"{os.getloadavg()[0]:.2f}",
    }


def is_busy() -> bool:
    return os.getloadavg()[0] > 0.3 * len(os.sched_getaffinity(0))


def sync_us(folder: Path, writes: int = 200) -> float:
    """What the disk asks for making one page durable, in microseconds: the floor under every commit."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        began = time.perf_counter()
        for number in range(writes):
            os.pwrite(file.fileno(), b"x" * 4096, number * 4096)
            os.fdatasync(file.fileno())
        return (time.perf_counter() - began) / writes * 1e6


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
