"""Records: what was ingested, by collection and key, with every version."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.store.noun import Noun
from penstock.store.rows import RecordRow

RECORD_PAGE = 500


class Records(Noun):
    """The verbs that read records; a turn writes them."""

    def collections(self) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in self._db.rows("collections")]

    def of(self, collection: str, after_key: str = "", limit: int | None = None) -> list[RecordRow]:
        """Records in the order of their keys: all of them, or with `limit` a page."""
        return list(self.each(collection, after_key=after_key, limit=limit))

    def each(
        self,
        collection: str,
        *,
        source_id: int | None = None,
        run_id: int | None = None,
        since: float | None = None,
        after_key: str = "",
        limit: int | None = None,
    ) -> Iterator[RecordRow]:
        """The same one by one, read in pages: a million need no more memory than a page.

        Only those that a source or a run wrote last, or that were written since a time.
        """
        where = {"source_id": source_id, "run_id": run_id, "since": since}
        left = limit
        while left is None or left > 0:
            page = self._db.decoded(
                "records",
                list[RecordRow],
                collection=collection,
                after_key=after_key,
                limit=RECORD_PAGE if left is None else min(left, RECORD_PAGE),
                **where,
            )
            if not page:
                return
            yield from page
            after_key, left = page[-1].key, None if left is None else left - len(page)

    def versions(self, collection: str, key: str) -> list[RecordRow]:
        """Every version of one record, the first one first."""
        return self._db.decoded("versions", list[RecordRow], collection=collection, key=key)
