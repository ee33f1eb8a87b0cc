"""`python -m tests.bridges.run prefect -- -k killed`: test bridges, each in the environment of its engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Warnings of engines are theirs to mend.
OPTIONS = ("-p", "no:cacheprovider", "-rfEs", "-o", "filterwarnings=default", "--timeout", "900")


def main(arguments: list[str]) -> int:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    engines, more = arguments[:at], arguments[at + 1 :]
    results = {engine: tested(engine, more) for engine in engines}
    for engine, result in results.items():
        print(f"{engine}: {result or 'passed'}")
    return 1 if any(results.values()) else 0


def tested(engine: str, more: list[str]) -> str:
    """Empty if its tests passed; otherwise why not."""
    python = ROOT / ".bridges" / engine / "bin" / "python"
    if not (HERE / engine).is_dir():
        return "NOT TESTED, there are no tests for it"
    if not python.with_name("pytest").exists():
        return f"NOT TESTED, it is not installed: make .bridges/{engine}/.installed"
    command = [str(python), "-m", "pytest", *OPTIONS, str(HERE / engine), *more]
    return "" if subprocess.run(command, cwd=ROOT).returncode == 0 else "FAILED"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
