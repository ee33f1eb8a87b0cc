"""Samples of where a process spends its processor time, by thread and room: for rows that miss their target.

Every few milliseconds the processor time that each thread has used since the last look is put down to the
innermost room of Penstock that is on its stack, or else to the package that is. A process that is asked to
writes what it has once a second, so that one that is killed loses a second at the most.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType

ASKED = "PENSTOCK_BENCH_SAMPLES"
LOOK_S, WRITE_S = 0.004, 1.0
# Packages of Penstock that are rooms, and what stands between a frame and the work it does.
OWN, PLUMBING = "penstock", ("threading", "concurrent", "asyncio", "selectors", "queue")
KINDS = {"penstock.engine.worker": "worker", "bench.side": "bench", "penstock": "command"}


class Sampler:
    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{os.getpid()}.json"
        self._used: dict[tuple[str, str], float] = defaultdict(float)
        self._last: dict[int, float] = {}

    def work(self) -> None:
        written = time.monotonic()
        while True:
            time.sleep(LOOK_S)
            self._look()
            if time.monotonic() - written > WRITE_S:
                self.write()
                written = time.monotonic()

    def _look(self) -> None:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        own = threading.get_ident()
        # No thread that has a stack can end while this one has the interpreter: its clock is there.
        for ident, frame in sys._current_frames().items():
            clock = time.pthread_getcpuclockid(ident)
            now = time.clock_gettime(clock)
            used, self._last[ident] = now - self._last.get(ident, 0.0), now
            if ident != own and used > 0:
                self._used[names.get(ident, "?"), _place(frame)] += used

    def write(self) -> None:
        found = [[*key, seconds] for key, seconds in self._used.items()]
        document = {"kind": _kind(sys.orig_argv), "used": found}
        partial = self._file.with_suffix(".part")
        partial.write_text(json.dumps(document))
        partial.replace(self._file)


def forget() -> None:
    """Drop what ended processes have written: what comes now is what counts."""
    if ASKED in os.environ:
        for file in Path(os.environ[ASKED]).glob("*.json"):
            file.unlink()


def start(folder: str) -> None:
    """Look at this process until it ends."""
    sampler = Sampler(Path(folder))
    threading.Thread(target=sampler.work, name="sampler", daemon=True).start()
    atexit.register(sampler.write)


def _place(frame: FrameType | None) -> str:
    """The room that is at work, or the package where none of ours is on the stack."""
    outside = ""
    while frame is not None:
        parts = str(frame.f_globals.get("__name__", "")).split(".")
        if parts[0] == OWN:
            return ".".join(parts[:2])
        if not outside and parts[0] not in PLUMBING:
            outside = parts[0]
        frame = frame.f_back
    return outside if outside not in ("", "__main__", "runpy") else "the loop"


def _kind(argv: list[str]) -> str:
    names = [argv[at + 1] for at, word in enumerate(argv[:-1]) if word == "-m"]
    return KINDS.get(names[0], names[0]) if names else "python"
