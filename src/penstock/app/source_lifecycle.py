"""The lifecycle of sources: propose, check, approve, try, activate, retire; and legal holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.noun import Noun, who
from penstock.app.refusals import refuse_fetch, refuse_gaps, refuse_legal_hold
from penstock.app.views.onboarding import (
    CheckedTextView,
    ComplianceView,
    OnboardingView,
    SourceReportView,
    TrialView,
)
from penstock.app.views.runs import Started
from penstock.errors import ConfigError, Refused, Remedy, UsageError
from penstock.gates.onboarding import SourceState, source_may_move
from penstock.settings import SourceSettings, normalise_source
from penstock.settings.load import load_settings
from penstock.store.onboarding_refusals import not_active

if TYPE_CHECKING:
    from penstock.store.onboardings import OnboardingRow

LARGEST_KEYS = 20_000


class SourceLifecycle(Noun):
    """The verbs that move a source from its proposal to its end."""

    def onboarding(self, source: str) -> OnboardingView:
        """Where a source stands, who decided that, and what its compliance lacks."""
        from penstock.app.source_report import onboarding_view

        key = self._known(source)
        return onboarding_view(self._project, key, self._store.onboardings.get(key))

    def compliance(self, source: str) -> ComplianceView:
        """The checks of a source's robots.txt and terms, when they go stale, and its legal hold."""
        from penstock.app.source_report import compliance_view

        key = self._known(source)
        return compliance_view(self._project, key, self._store.onboardings.get(key))

    def checked_text(self, source: str, hash: str) -> CheckedTextView:  # noqa: A002  as in views
        """What a check of this source has read, by the hash of it, or the beginning of that."""
        key = self._known(source)
        known = self._store.onboardings.get(key)
        checks = [] if known is None else self._store.onboardings.checks(known.source_id, 1000)
        found = {each.hash: each for each in checks if hash and each.hash.startswith(hash)}
        if len(found) != 1:
            few = "no check" if not found else "more than one check"
            raise UsageError(
                f"{few} of {key} has read a text with the hash {hash:.64}", code="no_text"
            )
        [(whole, check)] = found.items()
        text = self._store.onboardings.text(whole) or ""
        return CheckedTextView(
            source=key, subject=check.subject, url=check.url, hash=whole, text=text
        )

    def trials(self, source: str) -> Sequence[TrialView]:
        """The trial runs of a source since it was proposed last, the newest first."""
        from penstock.app.source_report import trials_of

        key = self._known(source)
        return trials_of(self._project, key, self._store.onboardings.get(key))

    def report(self, source: str) -> SourceReportView:
        """The evidence of a source's onboarding: decisions, checks, trials, runs, drift and budgets."""
        from penstock.app.source_report import report

        return report(self._project, self._known(source))

    def propose(
        self,
        source: str,
        *,
        keys: dict[str, Any] | None = None,
        owner: str = "",
        actor: str | None = None,
        reason: str = "",
    ) -> OnboardingView:
        """Propose a source; `keys` is its section of penstock.yaml, unless it stands there already.

        Nothing of it is fetched before it is approved. A retired source can be proposed again.
        """
        key, keys = normalise_source(source), dict(keys or {})
        is_configured = key in self._project.settings.sources
        if keys and is_configured:
            name = self._project.settings.file.name
            raise Refused(f"{name} has a source {key} already", "propose it without keys")
        if not keys and not is_configured:
            raise UsageError(
                f"{key} is not in {self._project.settings.file.name}: say how it is read",
                "--connector web, or --set KEY=VALUE for its keys",
            )
        state, known = self._state(key)
        # One that stands in the file where onboarding is required is proposed by that alone: now by name.
        is_new = known is None and (not is_configured or state is SourceState.PROPOSED)
        if not is_new and state is not SourceState.RETIRED:
            raise Refused(f"{key} is {_words(state)} already", code=f"source_{state}")
        if keys:
            self._settings_of(key, keys)
        [source_id] = self._store.sources.ensure([key]).values()
        text = msgspec.json.encode(keys).decode() if keys else ""
        if len(text) > LARGEST_KEYS:
            raise UsageError(f"the keys of a proposal have at most {LARGEST_KEYS:,} characters")
        about = (state, text, owner.strip(), who(actor), reason)
        if not self._store.onboardings.propose(source_id, *about):
            raise self._overtaken(key)
        return self.onboarding(key)

    def own(
        self, source: str, owner: str, *, actor: str | None = None, reason: str = ""
    ) -> OnboardingView:
        """Name the person or team that is responsible for a source."""
        key = self._known(source)
        if not owner.strip():
            raise UsageError("an owner needs a name", "data-team@example.com")
        begins, _ = self._state(key)
        about = (owner.strip(), who(actor), reason)
        self._store.onboardings.own(self._id(key), begins, *about)
        return self.onboarding(key)

    def check(
        self, source: str, *, terms: str = "", actor: str | None = None, reason: str = ""
    ) -> ComplianceView:
        """Read a source's robots.txt and terms now, and note what they say. This is never refused.

        `terms` is the address of its terms; later checks remember it. Terms that are as they were when they
        were accepted count anew; those that have changed stop the source until somebody accepts them.
        """
        return self._checked(source, terms, actor, reason, accepts=False)

    def accept_terms(
        self, source: str, *, terms: str = "", actor: str | None = None, reason: str = ""
    ) -> ComplianceView:
        """Accept a source's terms as they are now; without an address, those that the reason names."""
        if not reason.strip():
            raise UsageError(
                "accepting terms needs a reason", "who has read them, and why they allow it"
            )
        return self._checked(source, terms, actor, reason, accepts=True)

    def approve(
        self, source: str, *, owner: str = "", actor: str | None = None, reason: str = ""
    ) -> OnboardingView:
        """Let a proposed source have trial runs, once it has an owner and its compliance is checked.

        A source that is not in penstock.yaml yet is written there.
        """
        key = self._known(source)
        if owner.strip():
            self.own(key, owner, actor=actor, reason=reason)
        state, known = self._state(key)
        self._refuse_move(key, state, SourceState.TRIAL)
        self._refuse_gaps(key)
        if key not in self._project.settings.sources:
            self._write(key, known)
        if not self._store.onboardings.approve(self._id(key), state, who(actor), reason):
            raise self._overtaken(key)
        return self.onboarding(key)

    def trial(
        self,
        source: str,
        *,
        pages: int | None = None,
        actor: str | None = None,
        reason: str = "",
    ) -> Started:
        """Start a limited run of an approved source. Its records are staged: nothing that others read.

        It takes `pages` pages, by default `onboarding.trial_pages`, and sends `onboarding.trial_requests`
        requests at most. One that has not ended yet continues.
        """
        from penstock.app.source_report import trial_options
        from penstock.app.views.runs import run_view

        key = self._known(source)
        state, _ = self._state(key)
        if state is not SourceState.TRIAL:
            raise self._not_in_trial(key, state)
        if pages is not None and pages < 1:
            raise UsageError("a trial needs at least one page")
        self._refuse_gaps(key)
        options = trial_options(self._project, pages)
        row, is_new = self._project.start_trial(key, options, who(actor), reason)
        return Started(source=key, run=run_view(row, self._store.now()), is_new=is_new)

    def activate(
        self, source: str, *, actor: str | None = None, reason: str = ""
    ) -> OnboardingView:
        """Let a source be ingested, once a trial run has ended well. What trials staged is dropped."""
        from penstock.app.source_report import trials_of

        key = self._known(source)
        state, known = self._state(key)
        if state is not SourceState.TRIAL:
            raise self._not_in_trial(key, state)
        self._refuse_gaps(key)
        trials = trials_of(self._project, key, known)
        ended = [each for each in trials if each.state in ("completed", "partial")]
        if not ended:
            remedy = Remedy("sources.trial", key)
            seen = f"the last one is {trials[0].state}" if trials else "there is none"
            why = f"no trial run of {key} has ended well: {seen}"
            raise Refused(why, code="no_trial", remedy=remedy)
        run_id = ended[0].run_id
        if not self._store.onboardings.activate(self._id(key), run_id, who(actor), reason):
            raise self._overtaken(key)
        self._drop_staged(key, actor)
        return self.onboarding(key)

    def retire(self, source: str, *, actor: str | None = None, reason: str = "") -> OnboardingView:
        """Start nothing more of a source, and cancel its unfinished runs; also rejects a proposal.

        Its records and its history stay.
        """
        key = self._known(source)
        state, _ = self._state(key)
        self._refuse_move(key, state, SourceState.RETIRED)
        about = (self._id(key), state, who(actor), reason)
        if self._store.onboardings.retire(*about) is None:
            raise self._overtaken(key)
        self._drop_staged(key, actor)
        return self.onboarding(key)

    def legal_hold(self, source: str, *, actor: str | None = None, reason: str = "") -> bool:
        """Stop everything of a source at once, running attempts too. False if it is on hold already."""
        if not reason.strip():
            raise UsageError("a legal hold needs a reason")
        key = self._known(source)
        begins, _ = self._state(key)
        done = self._store.onboardings.legal_hold(self._id(key), begins, who(actor), reason)
        return done is not None

    def legal_release(self, source: str, *, actor: str | None = None, reason: str = "") -> bool:
        """End a legal hold: what was stopped goes on. False if there is none."""
        if not reason.strip():
            raise UsageError("the end of a legal hold needs a reason")
        key = self._known(source)
        return self._store.onboardings.legal_release(self._id(key), who(actor), reason)

    def _checked(
        self, source: str, terms: str, actor: str | None, reason: str, *, accepts: bool
    ) -> ComplianceView:
        from penstock.app.compliance import look
        from penstock.project.compliance import judge

        key = self._known(source)
        begins, known = self._state(key)
        settings = self._configured(key, known)
        seen = look(settings, known, terms)
        # What was accepted while it was read counts.
        found = judge(settings, self._store.onboardings.get(key), seen, accepts=accepts)
        self._store.onboardings.note_checks(
            self._id(key),
            begins,
            found.checks,
            who(actor),
            reason,
            robots=found.robots,
            terms=found.terms,
        )
        return self.compliance(key)

    def _drop_staged(self, key: str, actor: str | None) -> None:
        """What its trials staged was evidence; what this leaves goes with `retention.staged`."""
        from penstock.app.source_report import trials_of

        for each in trials_of(self._project, key, self._store.onboardings.get(key)):
            if self._store.replays.has_staged(each.run_id):
                self._store.replays.drop(each.run_id, who(actor), "its source was decided upon")

    # What is known of it.

    def _known(self, source: str) -> str:
        """The key of a source that is configured, proposed, or was once."""
        key = self._project.source_key(source)
        if key is None:
            raise UsageError("name a source")
        return key

    def _id(self, key: str) -> int:
        return self._store.sources.ensure([key])[key]

    def _state(self, key: str) -> tuple[SourceState, OnboardingRow | None]:
        known = self._store.onboardings.get(key)
        self._project.refuse_elsewhere(key, known)
        return self._project.source_state(key, known), known

    def _configured(self, key: str, known: OnboardingRow | None) -> SourceSettings:
        found = self._project.settings.sources.get(key)
        if found is not None:
            return found
        if known is None or not known.keys:
            name = self._project.settings.file.name
            raise UsageError(f"{name} has no source {key!r}", code="no_source")
        return self._settings_of(key, msgspec.json.decode(known.keys))

    def _settings_of(self, key: str, keys: Mapping[str, Any]) -> SourceSettings:
        """What penstock.yaml would make of these keys; refused where they make no sense."""
        settings = self._project.settings
        try:
            found = load_settings(settings.file, settings.environment, more={key: keys})
        except ConfigError as error:
            raise Refused(error.message, error.hint, code="bad_proposal") from None
        return found.sources[key]

    def _write(self, key: str, known: OnboardingRow | None) -> None:
        from penstock.app.new_source import write_source

        keys = {} if known is None or not known.keys else msgspec.json.decode(known.keys)
        if not keys:
            raise UsageError(f"{self._project.settings.file.name} has no source {key!r}")
        write_source(self._project.settings.file, key, keys)
        self._project.read_settings_again()

    # Why not.

    def _refuse_move(self, key: str, leaves: SourceState, enters: SourceState) -> None:
        if not source_may_move(leaves, enters):
            raise Refused(
                f"{key} is {_words(leaves)}, which does not lead to {enters}",
                code=f"source_{leaves}",
            )

    def _refuse_gaps(self, key: str) -> None:
        """Nothing of a source may be fetched before all of this is known; no force leads around it."""
        from penstock.app.source_report import gaps_of

        known = self._store.onboardings.get(key)
        refuse_legal_hold(key, known)
        refuse_gaps(key, gaps_of(self._project, known))

    def _refuse_fetch(self, source: str) -> None:
        """Refuse to look at a source of which nothing may be fetched yet, or any more."""
        key = self._project.source(source).key
        refuse_fetch(self._project, key, self._store.onboardings.get(key))

    def _not_in_trial(self, key: str, state: SourceState) -> Refused:
        if state is SourceState.ACTIVE:
            return Refused(f"{key} is active already", code="source_active")
        return not_active(key, state)

    def _overtaken(self, key: str) -> Refused:
        state, _ = self._state(key)
        return Refused(f"{key} is {_words(state)} by now", code=f"source_{state}")


def _words(state: SourceState) -> str:
    return "in trial" if state is SourceState.TRIAL else str(state)
