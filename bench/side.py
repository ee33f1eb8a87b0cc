"""One measurement in a process of its own: `python -m bench.side module:function SIZE RESULT`."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    call, size, result = sys.argv[1:]
    module, function = call.split(":")
    measure = getattr(importlib.import_module(module), function)
    Path(result).write_text(json.dumps(measure(json.loads(size), Path.cwd())))


if __name__ == "__main__":
    main()
