"""The shipped command in a terminal of its own, as a user starts it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path


def run(folder: Path, *arguments: str) -> float:
    """Run `penstock …` to its end, with everything it draws read as it comes; the moment of its end."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "penstock", *arguments, "--project", str(folder)]
    drawn = bytearray()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        reader = threading.Thread(target=_read, args=(ours, drawn))
        reader.start()
        process.wait()
        ended = time.time()
        reader.join()
    os.close(ours)
    if process.returncode:
        raise RuntimeError(f"penstock ended with {process.returncode}:\n{drawn.decode()[-2000:]}")
    return ended


def _read(terminal: int, drawn: bytearray) -> None:
    while True:
        try:
            drawn += os.read(terminal, 65_536)
        except OSError:  # Linux says so when the last process has closed the other end
            return
