"""Cells: sources divided over several databases, each with workers of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from penstock.app.alerts import Shown
from penstock.app.cell_answers import answered, ask_cells, silent_of
from penstock.app.cell_move import Act, Side, call_off, move
from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, page_within, size_of
from penstock.app.views.cells import (
    CellAlertView,
    CellFoundView,
    CellRunView,
    CellsAlertsView,
    CellSourceView,
    CellsOverviewView,
    CellsRunsView,
    CellsSearchView,
    CellsSourcesView,
    CellsStatusView,
    CellView,
    MoveView,
    SourcePlaceView,
)
from penstock.errors import PenstockError, Refused, Remedy, StoreUnreachable, UsageError, nearest
from penstock.gates.onboarding import is_here
from penstock.settings.cells import CellSettings
from penstock.settings.load import in_cell
from penstock.store.cells import NOTHING_SAID, CellRow

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.app.project import Project
    from penstock.app.views.alerts import AlertView
    from penstock.app.views.runs import RunView
    from penstock.app.views.search import SearchView
    from penstock.app.views.view import Page
    from penstock.store.store import Store

DRAIN_S = 600.0
Found = TypeVar("Found")
COUNTS = ("active_runs", "queued", "running", "waiting", "quarantined", "records", "workers")


def _quietly(_: str) -> None:
    """Tell nobody."""


class Cells(Noun):
    """The databases of a project, and which sources each of them has."""

    def list(self) -> Sequence[CellView]:
        """Every cell with its counts, `main` first. One that is down says so, after five seconds at most."""
        found = self._ask(self._counts)
        return [self._view(cell, found[cell.name]) for cell in self._cells().values()]

    def status(self) -> CellsStatusView:
        """The counts of all cells together, and of each."""
        return _status(self.list())

    def overview(self, *, limit: int = USUAL) -> CellsOverviewView:
        """All cells at one look: their counts, unresolved alerts and active runs, at most `limit` of each."""
        size = size_of(limit)

        def look(project: Project) -> tuple[dict[str, int], Page[AlertView], Page[RunView]]:
            runs = project.runs.list(active=True, limit=size)
            return self._counts(project.connection), project.alerts.list(limit=size), runs

        found = self._ask_all(look)
        counts = {name: each if isinstance(each, str) else each[0] for name, each in found.items()}
        said = answered(found)
        return CellsOverviewView(
            status=_status(
                [self._view(cell, counts[cell.name]) for cell in self._cells().values()]
            ),
            alerts=_newest_alerts({name: each[1] for name, each in said.items()}, size),
            runs=_newest_runs({name: each[2] for name, each in said.items()}, size),
        )

    def runs(self, *, active: bool = False, limit: int = USUAL) -> CellsRunsView:
        """The newest runs of all cells, or the newest `active` ones; each with its cell."""
        size = size_of(limit)
        found = self._ask_all(lambda project: project.runs.list(active=active, limit=size))
        silent, runs = silent_of(found), _newest_runs(answered(found), size)
        return CellsRunsView(is_whole=not silent, unreachable=silent, runs=runs)

    def alerts(self, *, state: Shown = "unresolved", limit: int = USUAL) -> CellsAlertsView:
        """The newest alerts of all cells: those that are not resolved, those in one state, or `all`."""
        size = size_of(limit)
        found = self._ask_all(lambda project: project.alerts.list(state=state, limit=size))
        silent, alerts = silent_of(found), _newest_alerts(answered(found), size)
        return CellsAlertsView(is_whole=not silent, unreachable=silent, alerts=alerts)

    def search(self, text: str) -> CellsSearchView:
        """What is called like this, in each cell that has something; a source in the cell where it is."""

        def look(project: Project) -> SearchView:
            seen, states = project.search(text), _states(project.connection)
            only = project.settings.is_placed_only
            here = [
                key for key in seen.sources if is_here(_state(states, key), is_placed_only=only)
            ]
            return replace(seen, sources=here)

        found = self._ask_all(look)
        silent, said = silent_of(found), answered(found)
        cells = [
            CellFoundView(cell=name, found=each) for name, each in said.items() if not each.is_empty
        ]
        return CellsSearchView(
            is_whole=not silent, unreachable=silent, text=text.strip(), cells=cells
        )

    def sources(
        self, *, cell: str | None = None, cursor: str | None = None, limit: int = USUAL
    ) -> CellsSourcesView:
        """The sources of all cells, or of one, by name: where each is, and what it is doing there."""
        names = None if cell is None else [self._cell(cell).name]
        found = self._ask(self._sources_in, names)
        rows = {each.key: each for answer in answered(found).values() for each in answer}
        ordered, silent = [rows[key] for key in sorted(rows)], silent_of(found)
        page = page_within(ordered, cursor, limit, lambda each: each, lambda each: each.key, str)
        return CellsSourcesView(
            is_whole=not silent, unreachable=silent, items=page.items, next=page.next
        )

    def get(self, source: str) -> SourcePlaceView:
        """Which cell has a source, and whether it is moving."""
        key = self._key(source)
        return self._place_of(key, self._ask(_states))

    def place(
        self,
        source: str,
        *,
        to: str | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> MoveView:
        """Put a source that has never run into a cell; without `to`, into the one that its key chooses.

        A key chooses the same cell as long as the cells are the same; of a new cell, only the sources that
        choose the new one choose anew. A source that was placed stays where it is.
        """
        key = self._key(source)
        wanted = self._cell(to).name if to is not None else self._usual(key)
        return self._moved(key, wanted, dry_run, actor, reason, DRAIN_S, _quietly, placed=True)

    def move(
        self,
        source: str,
        to: str,
        *,
        drain_s: float = DRAIN_S,
        dry_run: bool = False,
        on_progress: Callable[[str], None] = _quietly,
        actor: str | None = None,
        reason: str = "",
    ) -> MoveView:
        """Move a source with all that it has to another cell, or go on with a move that was cut off.

        It is stopped, its running jobs finish (for `drain_s` seconds at most), its rows and raw payloads are
        copied and compared, and one commit gives it away. Until then it is where it was. Its journal and its
        logs stay there. To the cell where it is, a move that has begun is called off.
        """
        key, wanted = self._key(source), self._cell(to).name
        if drain_s < 0:
            raise UsageError("a drain can't last less than no time")
        return self._moved(key, wanted, dry_run, actor, reason, drain_s, on_progress)

    # Moving.

    def _moved(
        self,
        key: str,
        wanted: str,
        dry_run: bool,
        actor: str | None,
        reason: str,
        drain_s: float,
        tell: Callable[[str], None],
        *,
        placed: bool = False,
    ) -> MoveView:
        found = self._place_of(key, self._ask(_states))
        if not found.cell:
            silent = ", ".join(found.unreachable)
            raise StoreUnreachable(
                f"{key} may be in {silent}, which does not answer",
                "a source can be moved when its cell answers",
            )
        if placed and (found.cell, found.state) == (wanted, "here"):
            return _move_view(key, wanted, wanted, Counter(), "here")
        origin_name = found.origin if found.state == "arriving" else found.cell
        calls_off = found.state == "leaving" and wanted == found.cell and not placed
        self._refuse(found, wanted, placed=placed)
        with self._opened({origin_name, wanted, found.to or wanted}) as projects:
            origin = self._side(projects, origin_name, key)
            counts = self._counts_of(origin.project, key)
            if placed and found.state == "here" and (counts["run"] or counts["record"]):
                raise Refused(
                    f"{key} has a history in {origin_name}",
                    "a source that has run is moved",
                    code="source_has_history",
                    remedy=Remedy("cells.move", key),
                )
            view = _move_view(key, origin_name, wanted, counts, found.state)
            if found.state == "here":
                self._refuse_shared(origin.project, key)
            if dry_run:
                return view
            begins = self._project.source_state(
                key, origin.project.connection.onboardings.get(key), is_known=True
            )
            act = Act(key, who(actor), reason, begins, drain_s, tell)
            if calls_off:
                call_off(origin, self._side(projects, found.to, key), act)
            else:
                self._perform(origin, self._side(projects, wanted, key), act, placed=placed)
        return _move_view(key, origin_name, wanted, counts, found.state, is_moved=not calls_off)

    def _perform(self, origin: Side, target: Side, act: Act, *, placed: bool) -> None:
        """Move it; what can never be moved stays where it was, and is not left stopped."""
        try:
            move(origin, target, act, placed=placed)
        except Refused as refusal:
            if refusal.code == "shared_records":
                call_off(origin.again(act.key), target.again(act.key), act)
            raise

    def _refuse(self, found: SourcePlaceView, wanted: str, *, placed: bool) -> None:
        key = found.key
        if found.state == "here" and found.cell == wanted:
            raise Refused(f"{key} is in {wanted} already", code="same_cell")
        if found.state == "leaving" and wanted not in (found.to, found.cell):
            raise Refused(
                f"{key} is on its way from {found.cell} to {found.to}",
                f"finish that first, or call it off: move it to {found.cell}",
                code="move_in_progress",
            )
        if found.state == "arriving" and wanted != found.cell:
            raise Refused(
                f"{key} is on its way from {found.origin} to {found.cell}",
                f"finish that first: move it to {found.cell}",
                code="move_in_progress",
            )
        if placed and found.state == "here" and self._project.settings.cells[found.cell].number:
            raise Refused(
                f"{key} is placed in {found.cell}",
                "a source that is placed is moved",
                code="source_placed",
                remedy=Remedy("cells.move", key),
            )

    def _refuse_shared(self, project: Project, key: str) -> None:
        others = project.connection.source_rows(key).shared_with()
        if others:
            raise Refused(
                f"{key} saves the same records as {', '.join(others)}",
                "sources that save the same records belong into one cell",
                code="shared_records",
            )

    def _counts_of(self, project: Project, key: str) -> Mapping[str, int]:
        rows = project.connection.source_rows(key)
        return {**rows.counts(), "running": project.connection.cells.running(rows.id)}

    def _side(self, projects: Mapping[str, Project], name: str, key: str) -> Side:
        project = projects[name]
        row = project.connection.cells.state(key)
        return Side(name, project, project.settings.is_placed_only, row)

    @contextmanager
    def _opened(self, names: set[str]) -> Iterator[Mapping[str, Project]]:
        """These cells as projects, each with a connection of its own."""
        with ExitStack() as until_done:
            found = {}
            for name in sorted(names):
                project = until_done.enter_context(closing(self._project_in(name)))
                try:
                    _ = project.connection
                except StoreUnreachable as error:
                    why = f"cell {name} does not answer: {error.message}"
                    raise StoreUnreachable(why, error.hint) from None
                found[name] = project
            yield found

    def _project_in(self, name: str) -> Project:
        return project_in(self._project, name)

    # Looking.

    def _key(self, source: str) -> str:
        self._cells()
        key = self._project.source_key(source)
        if key is None:
            raise UsageError("name a source")
        return key

    def _cells(self) -> Mapping[str, CellSettings]:
        cells = self._project.settings.cells
        if not cells:
            raise UsageError(
                f"{self._project.settings.file.name} has no `cells:`: all sources are in one database",
                code="no_cells",
            )
        return cells

    def _cell(self, name: str) -> CellSettings:
        cells = self._cells()
        if name not in cells:
            hint = nearest(name, cells) or f"there are {', '.join(cells)}"
            raise UsageError(f"there is no cell {name!r:.40}", hint, code="no_cell")
        return cells[name]

    def _usual(self, key: str) -> str:
        """The cell of the highest hash of its name and the key: a new cell takes only what it wins."""
        return max(self._cells(), key=lambda name: sha256(f"{name}\0{key}".encode()).digest())

    def _place_of(self, key: str, found: Mapping[str, dict[str, CellRow] | str]) -> SourcePlaceView:
        """Where a source is, by what the cells that answered say of it."""
        rows = {name: states.get(key, NOTHING_SAID) for name, states in answered(found).items()}
        silent = silent_of(found)
        place = _place(rows, self._cells())
        about = dict(zip(("cell", "state", "to", "origin"), place, strict=True))
        return SourcePlaceView(key=key, usual=self._usual(key), unreachable=silent, **about)

    def _ask(
        self, look: Callable[[Store], Found], names: Sequence[str] | None = None
    ) -> dict[str, Found | str]:
        """What each cell's database answers; text for one that does not."""
        return self._ask_all(lambda project: look(project.connection), names)

    def _ask_all(
        self, look: Callable[[Project], Found], names: Sequence[str] | None = None
    ) -> dict[str, Found | str]:
        cells = [name for name in self._cells() if names is None or name in names]
        return ask_cells(cells, self._project_in, look)

    def _counts(self, store: Store) -> dict[str, int]:
        """What a cell counts, with its sources by where they are."""
        overview = store.overview()
        counts = {name: int(getattr(overview, name)) for name in COUNTS}
        states = store.cells.states()
        _, number = store.cells.identity()
        configured = {*self._project.settings.sources, *states}
        here = sum(is_here(_state(states, key), is_placed_only=number > 0) for key in configured)
        on_the_way = [each.state for each in states.values()]
        leaving = on_the_way.count("leaving")
        return {
            **counts,
            "sources": here + leaving,
            "leaving": leaving,
            "arriving": on_the_way.count("arriving"),
        }

    def _view(self, cell: CellSettings, found: dict[str, int] | str) -> CellView:
        counts = dict.fromkeys(("sources", "leaving", "arriving", *COUNTS), 0)
        return CellView(
            name=cell.name,
            number=cell.number,
            store=cell.store_name,
            is_this=cell.name == self._project.settings.cell_name,
            is_reachable=not isinstance(found, str),
            error=found if isinstance(found, str) else "",
            **(counts if isinstance(found, str) else found),
        )

    def _sources_in(self, store: Store) -> Sequence[CellSourceView]:
        """The sources that a cell has, by what it says itself."""
        name, number = store.cells.identity()
        states = store.cells.states()
        configured = self._project.settings.sources
        views = []
        lifecycles = {each.source: each.state for each in store.onboardings.all()}
        for row in store.sources.all():
            said = states.get(row.key, NOTHING_SAID)
            has_it = is_here(_state(states, row.key), is_placed_only=number > 0)
            if not has_it and said.state not in ("leaving", "arriving"):
                continue
            if said.state == "arriving" and self._is_leaving_still(row.key, said.cell):
                continue
            if row.key not in configured and not row.last_run_id:
                continue
            views.append(
                CellSourceView(
                    key=row.key,
                    cell=name,
                    state="here" if has_it else said.state,
                    to=said.cell if said.state == "leaving" else "",
                    origin=said.cell if said.state == "arriving" else "",
                    lifecycle=str(lifecycles.get(row.key, "active")),
                    queued=row.queued,
                    running=row.running,
                    waiting=row.waiting,
                    quarantined=row.quarantined,
                    last_state=row.last_state,
                )
            )
        return views

    def _is_leaving_still(self, key: str, origin: str) -> bool:
        """Whether the cell that a source comes from has not given it away yet; that one shows it, then."""
        try:
            with closing(self._project_in(origin)) as project:
                return project.connection.cells.state(key).state == "leaving"
        except PenstockError:
            return False


def project_in(project: Nouns, cell: str) -> Project:
    """The project as this cell has it, with connections of its own; close it when you are done."""
    from penstock.app.project import Project

    return Project(in_cell(project.settings, cell), project.clock)


def _status(cells: Sequence[CellView]) -> CellsStatusView:
    silent = [each.name for each in cells if not each.is_reachable]
    sums = {name: sum(getattr(each, name) for each in cells) for name in ("sources", *COUNTS)}
    return CellsStatusView(is_whole=not silent, unreachable=silent, cells=[*cells], **sums)


def _newest_runs(pages: Mapping[str, Page[RunView]], size: int) -> list[CellRunView]:
    found = [CellRunView(cell=name, run=run) for name, page in pages.items() for run in page.items]
    return sorted(found, key=lambda each: -each.run.created_at)[:size]


def _newest_alerts(pages: Mapping[str, Page[AlertView]], size: int) -> list[CellAlertView]:
    found = [
        CellAlertView(cell=name, alert=one) for name, page in pages.items() for one in page.items
    ]
    return sorted(found, key=lambda each: -each.alert.opened_at)[:size]


def _states(store: Store) -> dict[str, CellRow]:
    return store.cells.states()


def _state(states: Mapping[str, CellRow], key: str) -> str | None:
    return states[key].state if key in states else None


def _place(
    rows: Mapping[str, CellRow], cells: Mapping[str, CellSettings]
) -> tuple[str, str, str, str]:
    """(cell, state, to, from) of a source, by what each cell says; all empty if nobody who answers has it."""
    for name, row in rows.items():
        if row.state == "leaving":
            return name, "leaving", row.cell, ""
    for name, row in rows.items():
        is_placed_only = cells[name].number > 0
        if is_here(row.state or None, is_placed_only=is_placed_only):
            return name, "here", "", ""
    for name, row in rows.items():
        if row.state == "arriving" and _is_given(rows.get(row.cell), name):
            return name, "arriving", "", row.cell
    return "", "unknown", "", ""


def _is_given(origin: CellRow | None, to: str) -> bool:
    return origin is not None and (origin.state, origin.cell) == ("left", to)


def _move_view(
    key: str, origin: str, to: str, counts: Mapping[str, int], state: str, *, is_moved: bool = False
) -> MoveView:
    return MoveView(
        key=key,
        origin=origin,
        to=to,
        is_moved=is_moved,
        is_continued=state != "here",
        runs=counts["run"],
        jobs=counts["job"],
        running=counts["running"],
        records=counts["record"],
        snapshots=counts["snapshot"],
        checkpoints=counts["checkpoint"],
        schedules=counts["schedule"],
    )
