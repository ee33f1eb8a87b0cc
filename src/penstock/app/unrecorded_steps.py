"""Steps of runbooks that were taken while the database was away, kept in a file until it is back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from penstock.private_files import open_private
from penstock.store.runbooks import NewStep

NAME = ".penstock-runbook-steps.jsonl"


class UnrecordedStep(msgspec.Struct, frozen=True):
    """A step, with the runbook and the source that it belongs to."""

    runbook: str
    target: str
    step: NewStep


class UnrecordedSteps:
    """The file of one project. Whoever reads it has to write it down, and then remove it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    def add(self, taken: UnrecordedStep) -> None:
        descriptor = open_private(self._path)
        with open(descriptor, "ab") as file:
            file.write(msgspec.json.encode(taken) + b"\n")
            file.flush()
            os.fsync(descriptor)

    def of(self, runbook: str, target: str) -> list[NewStep]:
        """Those of one runbook and target, in their order."""
        return [each.step for each in self if (each.runbook, each.target) == (runbook, target)]

    def __iter__(self) -> Iterator[UnrecordedStep]:
        if not self._path.exists():
            return
        with open(open_private(self._path), "rb") as file:
            for line in file.read().splitlines():
                # A line that was cut off by a crash was never acknowledged.
                if line.endswith(b"}"):
                    yield msgspec.json.decode(line, type=UnrecordedStep)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
