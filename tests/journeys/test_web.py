"""`penstock up --web`: the server is beside the work, and goes with it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.journeys.rig import Rig, until
from tests.journeys.test_signals import a_rig


def ask(url: str, token: str = "") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def addresses(rig: Rig, process: Any, number: int) -> str:
    """Where the server listens after it was started so many times."""

    def found() -> str | None:
        said = re.findall(r"web: listening on (http://\S+)", rig.output(process))
        return said[number - 1] if len(said) >= number else None

    return str(until(found, "it listens", process=process))


def web_pid(port: str) -> int:
    found = subprocess.run(
        ["pgrep", "-f", f"penstock web --beside.*{port}"], capture_output=True, text=True
    )
    return int(found.stdout.split()[0])


def is_gone(url: str) -> bool:
    try:
        ask(url)
    except (urllib.error.URLError, OSError):
        return True
    return False


def test_up_serves_the_api_beside_the_work_until_it_ends(tmp_path: Path) -> None:
    with a_rig(tmp_path, a={"signal": "go"}) as rig:
        token = rig.penstock("token", "create", "ci", "--role", "viewer").stdout.strip()
        process = rig.start("up", "--web", "--web-port", "0")
        first = addresses(rig, process, 1)
        assert ask(f"{first}/healthz") == 200
        assert ask(f"{first}/api/v1/overview") == 401
        assert ask(f"{first}/api/v1/overview", token) == 200
        assert "login?link" not in rig.output(process)  # it is a log, not a terminal

        # A server that dies is started again, and the work goes on meanwhile.
        os.kill(web_pid(str(tmp_path)), signal.SIGKILL)
        again = addresses(rig, process, 2)
        assert ask(f"{again}/api/v1/overview", token) == 200
        assert "the web server ended" in rig.output(process)
        assert process.poll() is None

        taken = rig.penstock("up", "--web", "--web-port", again.rpartition(":")[2], "--until-idle")
        assert taken.returncode == 7
        assert re.search(r"port \d+ is in use by pid \d+ \(penstock web", taken.stderr)
        assert "--web-port" in taken.stderr

        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, rig.output(process)
        assert is_gone(f"{again}/healthz")


def test_the_server_does_not_outlive_a_service_that_was_killed(tmp_path: Path) -> None:
    with a_rig(tmp_path, a={"signal": "go"}) as rig:
        process = rig.start("up", "--web", "--web-port", "0")
        at = addresses(rig, process, 1)
        process.kill()
        process.wait(60)
        until(lambda: is_gone(f"{at}/healthz"), "the server has ended")
