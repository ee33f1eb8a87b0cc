"""Releases: what an environment runs. Make one, compare two, promote one, roll back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.release_diff import Side, diff_of, side_of
from penstock.app.release_policy import policy_of, refuse_way
from penstock.app.release_source import (
    no_release,
    refuse_without_configuration,
    release_known_to,
    release_run_by,
)
from penstock.app.views.releases import (
    CheckoutView,
    OtherWorkerView,
    ReleaseActView,
    ReleaseApprovalView,
    ReleaseDiffView,
    ReleaseFetchView,
    ReleaseMoveView,
    ReleasePolicyView,
    ReleaseView,
    RunningReleaseView,
    act_view,
    approval_view,
    move_view,
    release_view,
)
from penstock.errors import Refused, Remedy, UsageError
from penstock.project.running_release import other_workers
from penstock.releases.manifest import SHORTEST, SHOWN
from penstock.store.releases import ReleaseActRow, ReleaseMove, ReleaseRow, new_release

if TYPE_CHECKING:
    from penstock.app.views.view import Page
    from penstock.project.release_content import ReleaseContent

ID = re.compile(rf"[0-9a-f]{{{SHORTEST},64}}")
WHOLE_ID = 64
# So many acts are gone through for the release before.
MOST_ACTS = 10_000
# So many approvals that wait are shown.
MOST_APPROVALS = 100


class Releases(Noun):
    """The releases of this environment."""

    def create(
        self, *, dry_run: bool = False, actor: str | None = None, reason: str = ""
    ) -> ReleaseMoveView:
        """Make a release of the folder as it is, and let this environment run it.

        The same content is the same release: making it again changes nothing. Secrets are never in it.
        """
        require_reason(reason)
        policy = policy_of(self._project)
        if policy.after is not None or policy.approvals:
            source = policy.after or "another environment"
            raise Refused(
                f"{self._name} takes releases from {source}",
                f"make it there, and promote it from {policy.after or 'there'} to {self._name}",
                code="promotion_needed",
            )
        content = self._content()
        running, row = self._store.releases.running(), self._made(content, who(actor), reason)
        notes = [f"{each}: a secret, left out" for each in content.manifest.masked]
        move = ReleaseMove(
            verb="create",
            release=row,
            contents=content.contents,
            seen=running,
            actor=who(actor),
            reason=reason,
        )
        return self._moved(move, dry_run, notes)

    def promote(
        self,
        source: str,
        release: str | None = None,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> ReleaseMoveView:
        """Let this environment run what another one runs: what was tested there, and nothing else.

        `source` is that environment. Refused if its live workers run something else, if `release` is named
        and is not the one, or if the policy of this environment asks for more.
        """
        require_reason(reason)
        policy = policy_of(self._project)
        refuse_way(policy, source, self._name)
        row, contents = release_run_by(self._project, source, release and _checked(release))
        refuse_without_configuration(row, self._name)
        move = ReleaseMove(
            verb="promote",
            release=row,
            contents=contents,
            seen=self._store.releases.running(),
            actor=who(actor),
            reason=reason,
            from_environment=source,
            approvals_needed=policy.approvals,
        )
        return self._moved(move, dry_run)

    def fetch(
        self,
        source: str,
        release: str | None = None,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> ReleaseFetchView:
        """Copy a release of another environment here, to try it as a shadow or a canary.

        Copying a release does not run it. `source` is that environment; without `release`, what it runs.
        """
        refuse_way(policy_of(self._project), source, self._name)
        wanted = release and _checked(release)
        row, contents = release_known_to(self._project, source, wanted)
        refuse_without_configuration(row, self._name)
        if dry_run:
            is_new = self._store.releases.get(row.id) is None
        else:
            is_new = self._store.releases.keep(row, contents, source, who(actor), reason)
        return ReleaseFetchView(
            release=row.id, environment=self._name, from_environment=source, is_new=is_new
        )

    def rollback(
        self,
        release: str | None = None,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> ReleaseMoveView:
        """Let this environment run the release before again, or this one, which it has run before."""
        require_reason(reason)
        row = self._store.releases.get(self._before(release))
        if row is None:
            raise no_release(self._name)
        move = ReleaseMove(
            verb="rollback",
            release=row,
            contents=self._store.releases.contents(row),
            seen=self._store.releases.running(),
            actor=who(actor),
            reason=reason,
        )
        return self._moved(move, dry_run)

    def _before(self, release: str | None) -> str:
        acts = self._store.releases.acts(MOST_ACTS)
        if release is None:
            stack = ran_here(acts)
            if len(stack) < 2:
                raise Refused(
                    f"there is no release of {self._name} before this one", code="nothing_before"
                )
            return stack[-2]
        wanted = self._id(release)
        if all(wanted != each.release_id for each in acts):
            raise Refused(
                f"{self._name} has never run release {wanted[:SHOWN]}", code="nothing_before"
            )
        return wanted

    def approve(
        self, release: str, *, actor: str | None = None, reason: str = ""
    ) -> ReleaseApprovalView:
        """Approve a release for this environment. Each person counts once; a promotion uses approvals up."""
        require_reason(reason)
        policy = policy_of(self._project)
        whole = self._whole(release, policy.after)
        is_new = self._store.releases.approve(whole, who(actor), reason)
        found = self._store.releases.approvals(whole)
        return ReleaseApprovalView(
            release=whole,
            environment=self._name,
            approvals=[approval_view(each, whole, self._name) for each in found],
            needed=policy.approvals,
            is_new=is_new,
        )

    def diff(
        self, before: str | None = None, after: str | None = None, *, source: str | None = None
    ) -> ReleaseDiffView:
        """How two releases differ for this environment.

        `before` is by default what it runs, and `after` the folder as it is now; with `source`, what that
        environment runs: what a promotion would bring.
        """
        name = self._name
        old = self._side(before)
        if source is not None:
            row, contents = release_run_by(self._project, source, None, strictly=False)
            return diff_of(old, side_of(row.id, row.manifest, contents, name), name)
        if after is not None:
            return diff_of(old, self._side(after), name)
        content = self._content()
        return diff_of(old, side_of(None, content.manifest, content.contents, name), name)

    def checkout(
        self, release: str | None = None, folder: str | None = None, *, dry_run: bool = False
    ) -> CheckoutView:
        """Write the files of a release into a folder: by default what runs here, into the project's own.

        Files that are no part of the release stay, and so does a penstock.yaml that has secrets of its own.
        """
        from penstock.project.release_folder import files_to_write, write_files

        row = self._row(release)
        target = Path(folder).absolute() if folder else self._project.settings.root
        contents = self._store.releases.contents(row)
        adds, overwrites = files_to_write(target, row, contents)
        if not dry_run:
            write_files(target, {**adds, **overwrites})
        return CheckoutView(
            release=row.id, folder=str(target), adds=sorted(adds), overwrites=sorted(overwrites)
        )

    def _side(self, release: str | None) -> Side:
        row = self._row(release)
        return side_of(row.id, row.manifest, self._store.releases.contents(row), self._name)

    def running(self) -> RunningReleaseView:
        """What this environment runs, and the live workers that run something else."""
        running = self._store.releases.running()
        newest = self._store.releases.acts(1) if running else []
        return RunningReleaseView(
            environment=self._name,
            release=running,
            since=newest[0].at if newest else None,
            by=newest[0].actor if newest else None,
            is_required=self._is_required(running),
            others=[
                OtherWorkerView(worker=each.worker, host=each.host, pid=each.pid)
                for each in other_workers(self._store, self._name)
            ],
        )

    def _is_required(self, running: str | None) -> bool:
        """Whether workers refuse to work with anything else: in production, once it has a release."""
        settings = self._project.settings
        return settings.is_guarded and (running is not None or bool(settings.release.is_required))

    def policy(self) -> ReleasePolicyView:
        """What a release needs before it comes into this environment, and the approvals that wait."""
        policy, waiting = policy_of(self._project), self._store.releases.waiting(MOST_APPROVALS)
        return ReleasePolicyView(
            environment=self._name,
            approvals_needed=policy.approvals,
            after=policy.after,
            approvals=[approval_view(each, release, self._name) for release, each in waiting],
        )

    def history(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[ReleaseActView]:
        """How releases came into this environment, the newest first."""
        size, name = size_of(limit), self._name
        rows = self._store.releases.acts(size + 1, place_of(cursor, int))
        running = self._store.releases.running()
        return page_of(rows, size, lambda row: act_view(row, name, running), lambda row: row.id)

    def each(self, *, limit: int | None = None) -> Iterator[ReleaseActView]:
        """Iterate over all of it, or the newest `limit`, page by page."""
        return each_item(lambda cursor, size: self.history(cursor=cursor, limit=size), limit)

    def get(self, release: str | None = None) -> ReleaseView:
        """A release by its id or the beginning of it; without one, what this environment runs."""
        row = self._row(release)
        name = row.manifest.configuration.get(self._name)
        return release_view(
            row,
            self._name,
            self._store.releases.running(),
            self._document(row, name) if name else None,
            self._store.releases.approvals(row.id),
        )

    @property
    def _name(self) -> str:
        return self._project.settings.environment_name

    def _content(self) -> ReleaseContent:
        from penstock.project.release_content import content_of

        return content_of(self._project, self._store.releases.site_schemas())

    def _made(self, content: ReleaseContent, actor: str, reason: str) -> ReleaseRow:
        """The release of this content: the one that is there, or a new one."""
        found = self._store.releases.get(content.manifest.id)
        now = self._store.now()
        return found or new_release(content.manifest, self._name, actor, reason, now)

    def _moved(
        self, move: ReleaseMove, dry_run: bool, notes: list[str] | None = None
    ) -> ReleaseMoveView:
        release, act = move.release.id, None
        if dry_run:
            act = _foretold(move) if move.seen != release else None
        else:
            act = self._store.releases.move(move)
        is_new = act is not None
        if act is None:
            act = (self._store.releases.acts_of(release, 1) or [_foretold(move)])[0]
        running = move.seen if dry_run else release
        return move_view(act, self._name, running, is_new=is_new, notes=notes or [])

    def _row(self, release: str | None) -> ReleaseRow:
        wanted = self._id(release) if release else self._store.releases.running()
        found = self._store.releases.get(wanted) if wanted else None
        if found is None:
            raise no_release(self._name)
        return found

    def _whole(self, release: str, source: str | None) -> str:
        """The whole id of a release that may not be here yet, but where releases come from."""
        text = _checked(release)
        known = self._store.releases.like(text) if len(text) < WHOLE_ID else [text]
        if known or source is None:
            return self._id(text)
        row, _ = release_run_by(self._project, source, text)
        return row.id

    def _id(self, release: str) -> str:
        """The whole id that is meant."""
        text = _checked(release)
        found = [text] if len(text) == WHOLE_ID else self._store.releases.like(text)
        if len(found) > 1:
            raise UsageError(f"{text} begins more than one release", code="no_release")
        if not found:
            raise UsageError(
                f"{self._name} has no release {text}",
                code="no_release",
                remedy=Remedy("releases.history"),
            )
        return found[0]

    def _document(self, row: ReleaseRow, name: str) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(
            self._store.releases.contents(row, [name])[name]
        )
        return found


def require_reason(reason: str) -> None:
    """What an environment runs does not change without a word about why."""
    if not reason.strip():
        raise UsageError("say why", "add --reason WHY", code="reason_needed")


def ran_here(acts: Sequence[ReleaseActRow]) -> list[str]:
    """The releases that led to the one that runs now, the oldest first; `acts` are the newest first.

    A rollback takes back what came after the release that it went to.
    """
    stack: list[str] = []
    for act in reversed(acts):
        if act.verb == "rollback" and act.release_id in stack:
            while stack[-1] != act.release_id:
                stack.pop()
        else:
            stack.append(act.release_id)
    return stack


def _checked(release: str) -> str:
    text = release.strip().lower()
    if not ID.fullmatch(text):
        raise UsageError(
            f"{release[:80]!r} can't be a release",
            f"write its id, or at least its first {SHORTEST} characters",
            code="no_release",
        )
    return text


def _foretold(move: ReleaseMove) -> ReleaseActRow:
    """The act that a dry run would do; without a time, so that a second one is equal."""
    about = (move.from_environment, 0.0, move.actor, move.reason)
    return ReleaseActRow(0, move.verb, move.release.id, move.seen, *about, [])
