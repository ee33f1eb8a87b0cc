"""`python -m penstock.builder.city FOLDER`: serves a city, and writes a project that builds its dataset."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from penstock.builder.city.project import CONFIG, SOURCE, lay_out
from penstock.builder.city.server import City
from penstock.builder.city.world import World
from penstock.builder.registry import builder


def main() -> None:
    options = _options()
    if (options.folder / CONFIG).exists():
        raise SystemExit(f"{options.folder} has a {CONFIG} already; name another folder")
    with City(World(options.seed, options.companies)) as city:
        lay_out(city, options.folder, profile=options.profile)
        print(f"a city of {options.companies:,} companies is served. Build its dataset:")
        print(f"  penstock run {SOURCE} --project {options.folder}", flush=True)
        # Whoever stops it, by Ctrl-C or by a signal, lets the servers close.
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m penstock.builder.city", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--companies", type=int, default=60, metavar="N")
    parser.add_argument("--seed", type=int, default=7, metavar="SEED")
    parser.add_argument("--profile", choices=[*builder.profiles], default=builder.default)
    return parser.parse_args()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
