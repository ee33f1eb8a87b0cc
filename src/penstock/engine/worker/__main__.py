"""A worker process: `python -m penstock.engine.worker`. What it does is in process.py."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    # Loading makes a hundred thousand objects that all stay: looking for cycles among them costs an eighth.
    gc.disable()
    from penstock.engine.worker.process import main as work

    return work()


if __name__ == "__main__":
    sys.exit(main())
