"""Landings: which files have started a run already, so that each does so once, and again when it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.store.database import storable_text, to_json
from penstock.store.noun import Noun

FILE_LANDED = "file.landed"


class Files(Noun):
    """The verbs of files that land."""

    def landed(self, source_id: int, schedule: str) -> dict[str, str]:
        """What is known to have landed and to be there: a stamp by path."""
        found: dict[str, str] = self._db.json("landed", source_id=source_id, schedule=schedule)
        return found

    def land(
        self, source_id: int, schedule: str, files: Mapping[str, str], actor: str
    ) -> int | None:
        """Signal that these files have landed: those that are new or have changed, if any are.

        Answers with the signal. Whoever else sees the same files land at the same time is answered with None.
        """
        files = {storable_text(path): stamp for path, stamp in files.items()}
        about = {"source_id": source_id, "schedule": schedule}
        with self._db.writing() as now:
            rows = self._db.rows(
                "land_if_changed", files=to_json(sorted(files.items())), now=now, **about
            )
            paths = sorted(str(row[0]) for row in rows)
            back = to_json(sorted(files.keys() - set(paths)))
            self._db.do("note_back", paths=back, **about)
            if not paths:
                return None
            signal_id: int = self._db.value(
                "raise_signal",
                signal=FILE_LANDED,
                data=to_json({"schedule": schedule, "files": paths}),
                source_id=source_id,
                actor=actor,
                key=None,
                now=now,
            )
            self._db.do("set_signal_of_landed", signal_id=signal_id, paths=to_json(paths), **about)
            return signal_id

    def note_gone(self, source_id: int, schedule: str, paths: Sequence[str]) -> None:
        """These are no longer there; should they come back unchanged, they have not landed anew."""
        with self._db.writing() as now:
            about = {"source_id": source_id, "schedule": schedule}
            self._db.do("note_gone", paths=to_json(sorted(paths)), now=now, **about)
