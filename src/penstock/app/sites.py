"""Sites that agents have learned: their schemas, and the proposals about them that a person decides."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from penstock.agents.moments import written_at
from penstock.agents.pipelines.mapper import LEARNED
from penstock.agents.proposals import decided, is_outdated
from penstock.agents.schema import Decision, Proposal, SiteSchema, read_schema
from penstock.agents.site import SCHEMAS
from penstock.agents.trust import TrustParams, doubts
from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, page_within, place_of, size_of
from penstock.app.views.sites import (
    DecisionView,
    ProposalView,
    SiteDetail,
    SiteView,
    proposal_view,
    site_detail,
    site_view,
)
from penstock.app.views.view import Page
from penstock.errors import PenstockError, Refused, Remedy, UsageError, nearest

if TYPE_CHECKING:
    from penstock.store.rows import RecordRow

Shown = Literal["open", "approved", "rejected", "outdated", "all"]
# Agents write schemas, too: a decision is made on the schema as it is when it is written.
TRIES = 5


class Sites(Noun):
    """The sites that agents have learned."""

    def list(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[SiteView]:
        """The sites by domain: the version of each schema, and what keeps it from being trusted."""
        size = size_of(limit)
        after = place_of(cursor, str) or ""
        rows = self._store.records.of(SCHEMAS, after, size + 1)
        return page_of(rows, size, self._view, lambda row: row.key)

    def each(self) -> Iterator[SiteView]:
        """Iterate over all of them."""
        return each_item(lambda cursor, limit: self.list(cursor=cursor, limit=limit))

    def get(self, domain: str) -> SiteDetail:
        """The whole schema of a site."""
        row = self._row(domain)
        schema = _read(row)
        return site_detail(row, schema, self._doubts(schema))

    def proposals(
        self,
        domain: str | None = None,
        *,
        state: Shown = "open",
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[ProposalView]:
        """Proposals about all sites or one: those that wait for a decision, those in one state, or `all`.

        Extraction of a site is refused while one of its proposals is open.
        """
        rows = [self._row(domain)] if domain is not None else self._store.records.each(SCHEMAS)
        found = [
            proposal_view(row.source, schema, each)
            for row in rows
            for schema in [_read(row)]
            for each in schema.schema_proposals
            if state in ("all", each.status)
        ]
        return page_within(
            sorted(found, key=_place),
            cursor,
            limit,
            lambda view: view,
            _place,
            tuple[int, str, str],
        )

    def each_proposal(
        self, domain: str | None = None, *, state: Shown = "open", limit: int | None = None
    ) -> Iterator[ProposalView]:
        """Iterate over all of them, or the first `limit`."""
        return each_item(
            lambda cursor, size: self.proposals(domain, state=state, cursor=cursor, limit=size),
            limit,
        )

    def proposal(self, domain: str, proposal: str) -> ProposalView:
        """One proposal, with what speaks for it and what it changes."""
        row = self._row(domain)
        schema = _read(row)
        return proposal_view(row.source, schema, _proposal(schema, proposal))

    def approve(
        self,
        domain: str,
        proposal: str,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> DecisionView:
        """Approve an open proposal: the schema of the site changes, and the validator looks at it next.

        Refused where the schema has changed since the proposal was made about it.
        """
        return self._decide(domain, proposal, "approved", dry_run, who(actor), reason)

    def reject(
        self,
        domain: str,
        proposal: str,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> DecisionView:
        """Reject an open proposal: it is closed, and the schema of the site stays as it is."""
        return self._decide(domain, proposal, "rejected", dry_run, who(actor), reason)

    def _decide(
        self,
        domain: str,
        proposal: str,
        status: Literal["approved", "rejected"],
        dry_run: bool,
        actor: str,
        reason: str,
    ) -> DecisionView:
        for _ in range(TRIES):
            row = self._row(domain)
            schema = _read(row)
            about = _open(schema, proposal)
            if status == "approved":
                _refuse_outdated(schema, about)
            at = written_at(self._store.now())
            fields = decided(schema, about, Decision(status, at, actor, reason))
            changed = sorted(fields.keys() - {"schema_proposals", "decisions"})
            version = int(fields.get("version", schema.version))
            view = DecisionView(
                domain=row.key,
                proposal=about.id,
                state=status,
                version=version,
                changed=changed,
                is_done=not dry_run,
                source=row.source,
            )
            if dry_run:
                return view
            try:
                said = reason or f"proposal {about.id} is {status}"
                edited = msgspec.to_builtins(fields)
                self._store.record_edits.edit(
                    SCHEMAS, row.key, edited, actor, said, if_version=row.version
                )
            except Refused as error:
                if error.code != "record_changed":
                    raise
                continue  # an agent was faster: decide on what it has written
            self._drop_trial(about, actor)
            if status == "approved":
                self._tell(row, schema, version, actor)
            return view
        raise Refused(
            f"agents change the schema of {domain} all the time", "try it again", code="site_busy"
        )

    def _drop_trial(self, proposal: Proposal, actor: str) -> None:
        """What the replay of a trial has staged was evidence: a decided proposal needs none."""
        trial = proposal.justification.get("trial")
        run = trial.get("replay") if isinstance(trial, dict) else None
        row = self._store.runs.get(run) if isinstance(run, int) else None
        if row is None or not row.is_ended or "trial" not in row.options.params:
            return
        if self._store.replays.has_staged(row.id):
            why = f"proposal {proposal.id} is decided"
            self._store.replays.drop(row.id, actor, why)

    def _tell(self, row: RecordRow, schema: SiteSchema, version: int, actor: str) -> None:
        """The new version is to be validated: whoever waits for the mapper does."""
        known = self._store.sources.ids()
        source = schema.learned_by if schema.learned_by in known else row.source
        self._store.signals.raise_(
            LEARNED,
            {"domain": schema.domain, "version": version},
            actor=actor,
            source_id=known.get(source, 0),
            key=f"{schema.domain} {version}",
        )

    def _view(self, row: RecordRow) -> SiteView:
        schema = _read(row)
        return site_view(row, schema, self._doubts(schema))

    def _doubts(self, schema: SiteSchema) -> builtins.list[str]:
        return doubts(schema, self._store.now(), TrustParams())

    def _row(self, domain: str) -> RecordRow:
        for row in self._store.records.versions(SCHEMAS, domain)[-1:]:
            if not row.is_removed:
                return row
        private = self._project.settings.private_sources
        rows = self._store.records.each(SCHEMAS)
        known = [row.key for row in rows if row.source not in private]
        raise UsageError(
            f"nobody has learned a site {domain!r}",
            nearest(domain, known) or "the mapper writes its schema",
            code="no_site",
            remedy=Remedy("sites.list"),
        )


def _read(row: RecordRow) -> SiteSchema:
    try:
        return read_schema(row.data)
    except msgspec.ValidationError as error:
        raise PenstockError(
            f"the schema of {row.key} can't be read: {error}",
            "run the mapper of the site with `force: true`; it writes the schema again",
            code="bad_site_schema",
        ) from None


def _place(view: ProposalView) -> tuple[int, str, str]:
    """The most urgent first."""
    return view.priority, view.domain, view.id


def _proposal(schema: SiteSchema, proposal: str) -> Proposal:
    known = {each.id: each for each in schema.schema_proposals}
    if proposal not in known:
        raise UsageError(
            f"{schema.domain} has no proposal {proposal!r}",
            nearest(proposal, known),
            code="no_proposal",
            remedy=Remedy("sites.proposals", schema.domain),
        )
    return known[proposal]


def _open(schema: SiteSchema, proposal: str) -> Proposal:
    found = _proposal(schema, proposal)
    if found.status == "outdated":
        raise Refused(
            f"proposal {proposal} is outdated: {found.reason}",
            "agents propose again what still holds",
            code="proposal_outdated",
            remedy=Remedy("sites.proposals", schema.domain),
        )
    if found.status != "open":
        by = f" by {found.decided_by}" if found.decided_by else ""
        raise Refused(
            f"proposal {proposal} was {found.status}{by} already", code="proposal_decided"
        )
    return found


def _refuse_outdated(schema: SiteSchema, proposal: Proposal) -> None:
    if is_outdated(schema, proposal):
        raise Refused(
            f"proposal {proposal.id} is out of date: it was made about version {proposal.version} of the "
            f"schema of {schema.domain}, which has changed since (version {schema.version})",
            "reject it; agents propose again what still holds",
            code="proposal_outdated",
        )
