"""Sources: what is configured, how it is doing, and stopping it for a while."""

from __future__ import annotations

from penstock.app.noun import Noun, who


class Sources(Noun):
    """The sources of a project."""

    def pause(self, source: str, *, actor: str | None = None, reason: str = "") -> bool:
        """Start nothing more of a source until it is resumed; False if it is paused already.

        What is running goes on to its end; its schedule goes on too, and its runs wait.
        """
        return self._store.pause_source(self._id_of(source), who(actor), reason)

    def resume(self, source: str, *, actor: str | None = None, reason: str = "") -> bool:
        """Let a paused source go on; a degraded one is taken for healthy. False if it is neither."""
        source_id, store = self._id_of(source), self._store
        is_recovered = store.recover_source(source_id, who(actor), reason)
        if is_recovered:
            store.start_recovered(who(actor))
        return store.resume_source(source_id, who(actor), reason) or is_recovered

    def hold(
        self, source: str | None = None, *, actor: str | None = None, reason: str = ""
    ) -> bool:
        """Maintenance: start nothing of a source, or of the whole project; False if it is held already."""
        return self._store.hold(self._scope(source), who(actor), reason)

    def unhold(
        self, source: str | None = None, *, actor: str | None = None, reason: str = ""
    ) -> bool:
        """End maintenance: all is as it was. False if it was not held."""
        return self._store.unhold(self._scope(source), who(actor), reason)

    def _id_of(self, source: str) -> int:
        return self._project.source_ids[self._project.source(source).key]

    def _scope(self, source: str | None) -> str:
        """The scope of a hold: '' for everything, else a source's key."""
        if source is None:
            return ""
        _ = self._project.source_ids  # a source that is new in the file becomes known to the store
        return self._project.source(source).key
