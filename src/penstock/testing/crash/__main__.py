"""`python -m penstock.testing.crash`: one sweep from the command line."""

import sys

from penstock.testing.crash.sweep import main

if __name__ == "__main__":
    sys.exit(main())
