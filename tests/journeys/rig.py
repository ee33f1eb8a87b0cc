"""What the journeys drive: a project in a folder, the real command in processes, and its store to look at.

Most of it is what `penstock prove` is made of (`penstock.prove`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import penstock
from penstock.prove.pipelines import PAGES
from penstock.prove.processes import CLOCK, PENSTOCK, is_gone, kill, parent_of, until
from penstock.prove.workplace import Workplace
from tests.journeys.commands import run_command

__all__ = [
    "CLOCK",
    "ENVIRONMENT",
    "PAGES",
    "PENSTOCK",
    "CountingSite",
    "Rig",
    "counting_site",
    "is_gone",
    "kill",
    "parent_of",
    "source_of",
    "until",
]

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
    "PYTHONPATH": str(Path(penstock.__file__).parents[1]),
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@contextmanager
def counting_site() -> Iterator[CountingSite]:
    """A site in a process of its own; it outlives every Penstock that is killed."""
    server = Path(__file__).with_name("counting_server.py")
    with subprocess.Popen(
        [sys.executable, str(server)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield CountingSite(int(process.stdout.readline()))
        process.stdin.close()


class CountingSite:
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.port = port
        self.url = f"http://{host}:{port}"

    def counts(self) -> Counter[str]:
        """How often each path was asked for."""
        with urllib.request.urlopen(f"{self.url}/counts", timeout=10) as answer:  # noqa: S310
            return Counter(json.loads(answer.read()))

    def times(self) -> list[float]:
        """When each request came, on the site's own monotonic clock."""
        with urllib.request.urlopen(f"{self.url}/times", timeout=10) as answer:  # noqa: S310
            found: list[float] = json.loads(answer.read())
            return found


class Rig(Workplace):
    """A project in a folder and the processes that work on it."""

    # A test that is interrupted takes its processes with it.
    are_apart = False

    def __init__(
        self,
        folder: Path,
        sources: dict[str, dict[str, Any]],
        pipeline: str = PAGES,
        worker: dict[str, Any] | None = None,
        store: str = "sqlite:penstock.db",
    ) -> None:
        self.database = folder / "penstock.db"
        config = {
            "project": "journey", "store": store, "worker": worker or {}, "sources": sources,
        }  # fmt: skip
        super().__init__(folder, config, pipeline, ENVIRONMENT)

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The command.

    def penstock(self, *words: str, within_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return run_command(words, self.folder, ENVIRONMENT, within_s)

    def enqueue(self, *sources: str) -> list[int]:
        """Queue a run of each source and leave the work to others; answers with their numbers."""
        done = self.penstock("run", *sources, "--detach", "--json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["run"] for line in done.stdout.splitlines()]

    # What must hold.

    def assert_sound(self) -> None:
        """The oracle: nothing is left open, nobody owns anything, each job ended once, the file is whole."""
        assert self.problems() == []
        checked = self.penstock("db", "check")
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def assert_fenced(self) -> None:
        """Each job ended once, and by its last attempt."""
        assert self.fence_problems() == []

    def assert_records(self, expected: set[str], collection: str = "page") -> None:
        """Each of these records is there, was written once, and nothing else is."""
        assert self.record_problems(expected, collection) == (0, 0, [])


def source_of(
    site: CountingSite, pages: int, *, page_ms: int = 0, host: int = 1, **more: Any
) -> dict[str, Any]:
    """A source that reads so many pages of the counting site, at one of its twenty addresses."""
    query = f"n={pages}" + (f"&page_ms={page_ms}" if page_ms else "")
    return {
        "pipeline": "steps:pages",
        "params": {"sitemap": f"http://127.0.0.{host}:{site.port}/sitemap.xml?{query}"},
        "fetch": {"allow_private": True, "robots": False},
        **more,
    }
