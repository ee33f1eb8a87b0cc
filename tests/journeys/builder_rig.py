"""Jobs of the builder as an operator runs them: the real command, on lists here or on a city on loopback."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from penstock import Project
from penstock.app.views.runs import RunView
from penstock.builder.city.project import source_of, write_lists
from penstock.builder.city.server import City
from penstock.builder.city.world import World
from tests.journeys.commands import run_command
from tests.journeys.rig import ENVIRONMENT, PENSTOCK

WITHIN_S = 240.0
ROWS = """\
name,street,city,postcode,region,phone,email,website
Acme Bakery,12 Main Street,Springfield,62701,IL,+1 217 555 0100,hello@acme.com,https://acme.com
Corner Bread LLC,4 Oak Avenue,Boston,02108,MA,+1 617 555 0142,info@example.com,
Old Mill Bakery,77 River Road,Salem,97301,OR,+1 503 555 0199,,
"""
QUICK = (
    "dumps.collect", "api.collect", "normalize.standardize", "normalize.resolve", "enrich.email",
    "enrich.phone", "quality.checks", "quality.score", "package.export",
)  # fmt: skip


class JobRig:
    """A folder with a job.yaml, and the folder of its project."""

    def __init__(self, folder: Path, job: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.out = folder / "out"
        (folder / "companies.csv").write_text(ROWS)
        self.write(job or {"profile": "quick", "dumps": [{"path": "companies.csv"}]})

    def write(self, job: Mapping[str, Any], name: str = "job.yaml") -> Path:
        # JSON is YAML.
        (self.folder / name).write_text(json.dumps(job, indent=1))
        return self.folder / name

    def builder(
        self, *words: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        about = {**ENVIRONMENT, **(environment or {})}
        return run_command(["builder", *words], self.folder, about, WITHIN_S)

    def run(self, verb: str, *words: str, **about: Any) -> subprocess.CompletedProcess[str]:
        return self.builder(verb, *words, "--job", "job.yaml", "--outdir", "out", **about)

    def steps(self, verb: str, *words: str, exit_code: int = 0) -> dict[str, dict[str, Any]]:
        """What became of each step, by its name."""
        answer = self.run(verb, *words, "--json")
        assert answer.returncode == exit_code, answer.stdout + answer.stderr
        found = [json.loads(line) for line in answer.stdout.splitlines()]
        return {each["step"]: each for each in found}

    def start(self, verb: str, *words: str, path: Path | None = None) -> subprocess.Popen[str]:
        """As a process of its own, to be killed or waited for; modules in `path` come first."""
        about = ["--job", "job.yaml", "--outdir", "out"]
        environment = dict(ENVIRONMENT)
        if path is not None:
            environment["PYTHONPATH"] = f"{path}:{ENVIRONMENT['PYTHONPATH']}"
        return subprocess.Popen(
            [*PENSTOCK, "builder", verb, *words, *about],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def runs(self) -> list[RunView]:
        with Project.open(self.out) as project:
            return list(project.runs.each())

    def succeeded(self, run: int) -> dict[str, int]:
        """How many jobs of each stage of a run have succeeded."""
        with Project.open(self.out) as project:
            return {each.stage: each.succeeded for each in project.runs.stages(run)}


def statuses(steps: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {name: each["status"] for name, each in steps.items()}


@contextmanager
def city_job(folder: Path, companies: int, **about: Any) -> Iterator[tuple[JobRig, City]]:
    """A city that is served, and a job that builds its dataset; `about` is more of the job."""
    with City(World(7, companies)) as city:
        rig = JobRig(folder)
        write_lists(city, folder)
        source = source_of(city)
        rig.write(
            {
                "name": "city",
                "profile": "standard",
                **source["params"],
                "budgets": {"max_http_requests": 0, "max_http_bytes": 0},
                "source": {"limits": source["limits"], "fetch": source["fetch"]},
                **about,
            }
        )
        yield rig, city


class HoldingApi:
    """An API that answers when it is let to: `/held/NAME` waits for `let_go(NAME)`."""

    def __init__(self) -> None:
        self._asked: dict[str, threading.Event] = {}
        self._open: dict[str, threading.Event] = {}
        self._lock = threading.Lock()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/robots.txt":
                    self.send_error(404)
                    return
                name = self.path.strip("/").partition("?")[0]
                api.asked(name).set()
                api.gate(name).wait(WITHIN_S)
                body = b'[{"id": 1, "name": "Acme Bakery", "city": "Springfield"}]'
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *about: Any) -> None:  # noqa: A002
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> HoldingApi:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *about: object) -> None:
        for name in list(self._open):
            self.let_go(name)
        self._server.shutdown()
        self._server.server_close()

    def asked(self, name: str) -> threading.Event:
        with self._lock:
            return self._asked.setdefault(name, threading.Event())

    def gate(self, name: str) -> threading.Event:
        with self._lock:
            return self._open.setdefault(name, threading.Event())

    def let_go(self, name: str) -> None:
        self.gate(name).set()


def held_job(api: HoldingApi, **about: Any) -> dict[str, Any]:
    """A job whose `api.collect` waits for `held`."""
    return {
        "profile": "quick",
        "dumps": [{"path": "companies.csv"}],
        "api": {"endpoints": [{"url": f"{api.url}/held", "paging": {"kind": "none"}}]},
        "source": {"fetch": {"allow_private": True}},
        **about,
    }
