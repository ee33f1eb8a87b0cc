"""`python -m penstock.bridges.lifeline COMMAND …`: a command of Penstock that dies with whoever started it.

Its standard input is a pipe that the starter holds and never writes to. When that is closed, because the
starter has ended or was killed, the process ends at once, as if it were killed itself: an engine's next try
must not find it at work.
"""

from __future__ import annotations

import os
import runpy
import threading

KILLED = 137


def main() -> None:
    threading.Thread(target=_follow, args=(0,), name="lifeline", daemon=True).start()
    runpy.run_module("penstock", run_name="__main__", alter_sys=True)


def _follow(pipe: int) -> None:
    while os.read(pipe, 1024):
        pass
    os._exit(KILLED)


if __name__ == "__main__":
    main()
