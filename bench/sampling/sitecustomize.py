"""Python imports this before anything else where this folder is on its path: see bench/sampler.py."""

import os

if "PENSTOCK_BENCH_SAMPLES" in os.environ:
    from bench.sampler import start

    start(os.environ["PENSTOCK_BENCH_SAMPLES"])
