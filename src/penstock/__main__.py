"""`python -m penstock`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `-m` puts the current folder first, where anybody's `random.py` may lie.
        del sys.path[0]
    from penstock.cli import main

    sys.exit(main())
