"""What only schedules carries nothing of what only workers need: it has ten thousand schedules to carry."""

from __future__ import annotations

import subprocess
import sys


def test_who_only_schedules_does_not_load_http() -> None:
    code = "import sys, penstock.engine.supervisor.supervisor; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
