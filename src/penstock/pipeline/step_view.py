"""What a step sees of the job that it works on: its source, run, item and window."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.errors import PipelineError
from penstock.jobs.signals import FILE_LANDED
from penstock.jobs.windows import Window
from penstock.pipeline.attempt import Attempt, StepRun, StepSource
from penstock.pipeline.numbers import unkept_number
from penstock.pipeline.step import DataError


class StepView:
    """What is known before a step does anything."""

    __slots__ = ("_attempt", "_step")

    def __init__(self, attempt: Attempt, step: str) -> None:
        self._attempt = attempt
        self._step = step

    @property
    def params(self) -> dict[str, Any]:
        """The `params` of the source, with those of the run over them."""
        return self._attempt.source.params

    @property
    def source(self) -> StepSource:
        """The source that this job belongs to."""
        return self._attempt.source

    @property
    def run(self) -> StepRun:
        """The run that this job belongs to."""
        return self._attempt.run

    @property
    def key(self) -> str:
        """The idempotency key of this job's item."""
        return self._attempt.job.key

    @property
    def attempt(self) -> int:
        """The number of this attempt; it grows with every start of the job."""
        return self._attempt.job.attempt

    @property
    def window(self) -> Window:
        """The time window and partition of this job; only in a step with `windows=True`."""
        found = self._attempt.window()
        if found is None:
            raise PipelineError(f"step {self._step!r} is not in a job that takes windows")
        return found

    def files(self) -> list[str]:
        """The files that this run is about, by their whole paths.

        In a run that landed files started, those files; in any other run, all files that match what the
        schedules of the source watch.
        """
        signal, watched = self.run.signal, self.source.watched
        if signal is not None and signal.name == FILE_LANDED:
            return list(signal.data["files"])
        if not watched:
            raise PipelineError(
                f"ctx.files: source {self.source.key} watches no folder",
                'schedule: {watch: "./inbox/*.json"}',
            )
        from penstock.http.folder import matching

        return matching(watched)

    @property
    def in_progress(self) -> Attempt:
        """For Penstock's own steps."""
        return self._attempt

    def now(self) -> float:
        """UTC in seconds since the epoch, by the engine's clock."""
        return self._attempt.clock.now()

    def _json(self, where: str, value: Any) -> bytes:
        try:
            encoded = msgspec.json.encode(value, order="sorted")
            unkept = unkept_number(value, encoded)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._bad(f"{where} got something that is not JSON: {error}") from None
        if unkept:
            raise self._bad(f"{where} got a number that JSON does not have: {unkept}")
        return encoded

    def _bad(self, message: str) -> DataError:
        return DataError(f"step {self._step!r}: {message}")
