"""A Prefect server on loopback for all tests, with a database of its own; it sends nothing to anybody."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.journeys.rig import until
from tests.postgres.ports import free_port

# Before Prefect is imported, which reads them then.
HOME = Path(tempfile.mkdtemp(prefix="prefect-"))
PORT = free_port()
URL = f"http://127.0.0.1:{PORT}/api"
os.environ |= {
    "PREFECT_HOME": str(HOME),
    "PREFECT_PROFILES_PATH": str(HOME / "profiles.toml"),
    "PREFECT_API_URL": URL,
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    # A flow that is served is looked for often, so that tests need not wait.
    "PREFECT_RUNNER_POLL_FREQUENCY": "1",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
}


@pytest.fixture(scope="session", autouse=True)
def prefect_server() -> str:
    with (HOME / "server.log").open("w") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "prefect", "server", "start", "--no-ui"),
                *("--host", "127.0.0.1", "--port", str(PORT)),
            ],
            stdout=out,
            stderr=out,
            text=True,
        )
    # Later than with the session: while this process ends, threads of Prefect send the server what is left
    # of their events, and without a server they try again for minutes.
    atexit.register(_stop, process)
    until(_answers, "the server of Prefect answers", within_s=600, process=process)
    return URL


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _answers() -> bool:
    try:
        with urllib.request.urlopen(f"{URL}/health", timeout=5) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
