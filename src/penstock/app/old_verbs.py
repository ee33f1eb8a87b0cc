"""The verbs of earlier releases: each calls its noun, and goes when that has had it for one release."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.app.nouns import Nouns
from penstock.errors import Refused
from penstock.project.starting import Asked

if TYPE_CHECKING:
    from penstock.engine.dry_run import Tried
    from penstock.engine.foreground import RunReport


class OldVerbs(Nouns):
    """What a project had before it had nouns."""

    def perform(
        self,
        name: str,
        kind: str = "full",
        *,
        actor: str | None = None,
        reason: str = "",
        params: dict[str, Any] | None = None,
        pages: int | None = None,
        on_progress: Callable[[RunReport], None] | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> RunReport:
        """Start a run of a source, perform it with workers of its own, and answer when it has ended.

        `params` go over the source's own, `pages` is how many pages are enough. A run of this kind that has
        not ended is gone on with. Where somebody works on the project already,
        they do the work and this waits for it. It also works inside a running event loop, as notebooks have,
        and blocks it. Ctrl-C stops the workers; the next `perform`, `penstock run` or `penstock up` goes on
        with the run.
        """
        from penstock.app.performing import performed

        self._refuse_stopped(name)
        asked = Asked(params=params or {}, pages=pages)
        row, _ = self.start_or_join(name, kind, actor, reason, asked)
        [report] = performed(self, [row.id], on_progress, tell)
        return report

    def breaker_key(self, name: str) -> str:
        """`breakers.key`."""
        return self.breakers.key(name)

    def open_breaker(
        self, name: str, for_s: float, actor: str | None = None, reason: str = ""
    ) -> bool:
        """`breakers.open`."""
        return self.breakers.open(name, for_s, actor=actor, reason=reason)

    def close_breaker(self, name: str, actor: str | None = None, reason: str = "") -> bool:
        """`breakers.close`."""
        return self.breakers.close(name, actor=actor, reason=reason)

    def try_page(
        self,
        name: str,
        target: str | int,
        *,
        step: str | None = None,
        item: Any = None,
        offline: bool = False,
    ) -> Tried:
        """Perform the steps of one page and what follows them, without writing anything."""
        from penstock.app.performing import in_own_loop
        from penstock.engine.dry_run import try_page

        return in_own_loop(
            lambda: try_page(self, name, str(target), stage=step, item=item, is_offline=offline)
        )

    def _refuse_stopped(self, name: str) -> None:
        """What is paused or held would never end."""
        key = self.source(name).key
        for row in self.connection.sources():
            if row.key == key and row.paused_at is not None:
                raise Refused(f"{key} is paused", f"project.resume({key!r})")
        for hold in self.connection.holds():
            if hold.scope in ("", key):
                what = hold.scope or "the project"
                raise Refused(f"{what} is held by {hold.actor}", f"penstock unhold {hold.scope}")
