"""A city that is served, and the real command that builds its dataset."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from penstock.builder.city.evaluation import Evaluation, evaluate
from penstock.builder.city.project import CONFIG, SOURCE, lay_out
from penstock.builder.city.server import City
from penstock.builder.company import Company
from tests.journeys.rig import ENVIRONMENT, PENSTOCK, until

DATASET = "companies.jsonl"


class CityRun:
    """A project in a folder that builds the dataset of a city."""

    def __init__(self, folder: Path, city: City, **about: Any) -> None:
        self.folder = folder
        self.city = city
        lay_out(city, folder, **about)

    def configure(self, **keys: Any) -> None:
        """Change keys of the project."""
        config = self.folder / CONFIG
        config.write_text(json.dumps({**json.loads(config.read_bytes()), **keys}))

    def command(self, *arguments: str, within_s: float = 280) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PENSTOCK, *arguments],
            cwd=self.folder,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=within_s,
        )

    def run(self, within_s: float = 280) -> subprocess.CompletedProcess[str]:
        return self.command("run", SOURCE, within_s=within_s)

    def json(self, *arguments: str) -> Any:
        found = self.command(*arguments, "--json")
        assert found.stdout, found.stderr
        return json.loads(found.stdout)

    def records(self, collection: str) -> dict[str, Any]:
        lines = self.command("records", collection, "--format", "jsonl").stdout.splitlines()
        return {line["key"]: line["data"] for line in map(json.loads, lines)}

    @property
    def package(self) -> Path:
        return self.folder / "out" / "package"

    @property
    def dataset(self) -> bytes:
        return (self.package / DATASET).read_bytes()

    def companies(self) -> list[Company]:
        return [json.loads(line) for line in self.dataset.splitlines()]

    def evaluation(self) -> Evaluation:
        return evaluate(self.companies(), self.city.world.truth)

    def kill_when(self, requests: int) -> None:
        """Begin a run, and kill it and all its processes when the city has been asked this often more."""
        asked = self.city.counted + requests
        process = subprocess.Popen(
            [*PENSTOCK, "run", SOURCE],
            cwd=self.folder,
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            until(lambda: self.city.counted >= asked, "it has asked", process=process)
            assert process.poll() is None, "it was done before it could be killed"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
