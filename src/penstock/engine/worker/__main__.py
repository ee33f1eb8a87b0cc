"""A worker process: `python -m penstock.engine.worker`. What it does is in process.py."""

from __future__ import annotations

import gc
import sys

from penstock.engine.worker.early_start import EARLY, told_at


def main() -> int:
    # Loading makes a hundred thousand objects that all stay: looking for cycles among them costs an eighth.
    gc.disable()
    from penstock.engine.worker.process import main as work

    arguments = sys.argv[1:]
    if arguments[:1] == [EARLY]:
        told = told_at(int(arguments[1]))
        if told is None:
            return 0
        arguments = told
    return work(arguments)


if __name__ == "__main__":
    sys.exit(main())
