"""A time of day that is wrong, for the processes of one host, and can be set while they work."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.prove.processes import own_environment

# Read by Python when it starts: the time of day is off by what the file says at that moment.
SHIM = """
import os
import time

true_time = time.time


def wrong_time():
    with open(os.environ["WRONG_BY"]) as file:
        return true_time() + float(file.read() or 0)


time.time = wrong_time
"""


class WrongClock:
    """What is started with `environment` sees a time that is off by so many seconds."""

    def __init__(self, folder: Path, name: str, wrong_by: float) -> None:
        self._file = folder / f"{name}.wrong"
        self.set(wrong_by)
        shim = folder / "shim"
        shim.mkdir(exist_ok=True)
        (shim / "sitecustomize.py").write_text(SHIM)
        self.environment = {
            "PYTHONPATH": os.pathsep.join([str(shim), own_environment()["PYTHONPATH"]]),
            "WRONG_BY": str(self._file),
        }

    def set(self, wrong_by: float) -> None:
        """In one move: whoever reads it meanwhile finds the old or the new."""
        new = self._file.with_suffix(".new")
        new.write_text(str(wrong_by))
        new.replace(self._file)
