"""What a step leaves behind: records, rejects, checkpoints, signals, spending, notes and further items."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import datetime
from types import EllipsisType
from typing import Any, get_args

from penstock.errors import ConfigError, PipelineError, nearest
from penstock.jobs.effects import Basis, Mark, Merge, Note, Proposed, Raised, Rejection, Save
from penstock.jobs.job import bounded_key
from penstock.jobs.outcome import REJECTED, Reject
from penstock.jobs.signals import is_reserved
from penstock.jobs.words import words_of
from penstock.pipeline.collection_schemas import misfit
from penstock.pipeline.numbers import LARGEST_NUMBER, is_number
from penstock.pipeline.rejection import below_threshold, does_not_fit, is_code, rejection_of
from penstock.pipeline.step import is_text
from penstock.pipeline.step_view import StepView
from penstock.settings.secrets import LOOKED_AT
from penstock.settings.units import normalise_source

MERGES: tuple[str, ...] = get_args(Merge)
# More of them than a source keeps are a mistake.
MOST_ANNOUNCED = 1000
# Sources that one attempt may propose, and how much it may say of each.
MOST_PROPOSED = 1000
LARGEST_PROPOSAL = 20_000
LONGEST_REASON = 500
# Seconds since the epoch until the year 10000; milliseconds are beyond it.
END_OF_TIME = 253_402_300_800


class StepEffects(StepView):
    """Its methods buffer what happens when the attempt commits, all or none."""

    __slots__ = ()

    def follow(self, item: Any) -> None:
        """Queue another item, such as a link, for this same step, in a job of its own.

        Each key is taken once in a run, within the bounds of the step's `follow=`; the rest is left out.
        """
        self._attempt.guard()
        feed = self._attempt.stage.follow_feed
        if feed is None or feed.stage != self._step:
            raise PipelineError(
                f"step {self._step!r} calls ctx.follow: say so with "
                "@pipeline.step(…, follow=True), or follow={'depth': 5, 'pages': 1000}"
            )
        attempt = self._attempt
        attempt.enqueue(feed.job(item, attempt.source.priority, attempt.snapshot))

    def save(
        self,
        collection: str,
        *,
        key: str | int,
        data: Any,
        score: float | None = None,
        merge: Merge = "replace",
        based_on: Mapping[str, Any] | EllipsisType | None = ...,
    ) -> None:
        """Save a record, unique by collection and key, when the attempt commits.

        With a score below the source's threshold, or if it does not fit the schema of the collection, it is
        not saved but rejected.

        `based_on`: fields of the record as this attempt has read them, or None if there was no record. If one
        of them has changed when the attempt commits, the attempt commits nothing and is retried.
        """
        attempt = self._attempt
        attempt.guard()
        if not is_text(collection):
            raise self._bad(f"ctx.save needs the name of a collection, not {collection!r}")
        if merge not in MERGES:
            raise self._bad(f"ctx.save knows no merge {merge!r}; {nearest(str(merge), MERGES)}")
        if type(data) is not dict and callable(dump := getattr(data, "model_dump", None)):
            data = dump(mode="json")  # a model of pydantic
        kept_as = self._record_key(collection, key)
        encoded = self._record_data(collection, data)
        save = Save(
            collection,
            kept_as,
            encoded,
            None if score is None else self._score(collection, score),
            merge,
            attempt.snapshot,
            version=attempt.source.version,
        )
        attempt.hold(len(encoded))
        if based_on is not ...:
            fields = self._json(f"ctx.save({collection!r}, based_on=…)", based_on)
            attempt.effects.bases.append(Basis(save.collection, save.key, fields))
        judged = self._judged(save)
        if judged is None:
            attempt.effects.saves.append(save)
        else:
            attempt.effects.rejections.append(judged)
        if attempt.probe is not None:
            attempt.probe.saved()

    def _judged(self, save: Save) -> Rejection | None:
        """Why it is rejected; None if it is saved."""
        source = self._attempt.source
        if source.schemas or self._attempt.stage.schemas:
            is_part = save.merge == "merge"
            problem = misfit(self._attempt, save.collection, save.data, is_part=is_part)
            if problem is not None:
                return does_not_fit(f"{save.collection} {save.key}", problem, save.score)
        threshold = source.threshold
        if threshold is not None and save.score is not None and save.score < threshold:
            return below_threshold(f"{save.collection} {save.key}", save.score, threshold)
        return None

    def reject(self, reason: str, *, code: str = REJECTED, score: float | None = None) -> None:
        """Store this item as rejected, with a code for programs, and continue."""
        self._attempt.guard()
        if not is_code(code):
            raise self._bad(f"ctx.reject needs a code of letters, digits and _.:-, not {code!r}")
        judged = Reject(reason, code, self._score("reject", score))
        self._attempt.hold(0)
        self._attempt.effects.rejections.append(rejection_of(judged))

    def checkpoint(
        self,
        cursor: Any,
        partition: str = "default",
        *,
        offset: Any = None,
        ordered: bool = True,
    ) -> None:
        """Move the checkpoint of this partition, in the same transaction as the rest of the attempt.

        A cursor that goes back, is empty or is of another kind is refused: the old one stays, and the
        journal records it. `ordered=False` is for cursors that have no order, such as opaque tokens.
        """
        self._attempt.guard()
        if not is_text(partition):
            raise self._bad(f"ctx.checkpoint needs the name of a partition, not {partition!r}")
        if partition.startswith("~"):
            raise self._bad(f"a partition's name can't begin with ~, as {partition!r} does")
        encoded = self._json("ctx.checkpoint", cursor)
        at = self._json("ctx.checkpoint", offset)
        self._attempt.hold(len(encoded))
        self._attempt.effects.marks.append(Mark(partition, encoded, at, bool(ordered)))

    def signal(self, name: str, **data: Any) -> None:
        """Raise a signal, which may start runs."""
        self._attempt.guard()
        if not is_text(name):
            raise self._bad(f"ctx.signal needs a name, not {name!r}")
        if is_reserved(name):
            raise self._bad(f"ctx.signal: only Penstock raises {name}")
        raised = Raised(name, self._json("ctx.signal", data))
        self._attempt.hold(len(raised.data))
        self._attempt.effects.signals.append(raised)

    def propose_source(self, source: str, *, reason: str = "", **keys: Any) -> None:
        """Propose a source that was discovered: `keys` is its section of penstock.yaml.

        A person decides: nothing of it is fetched before it is approved. What is known already, or was
        decided about before, stays as it is. In probes, trials and replays it has no effect.
        """
        self._attempt.guard()
        try:
            key = normalise_source(source)
        except ConfigError as error:
            raise self._bad(f"ctx.propose_source: {error.message}") from None
        encoded = self._json("ctx.propose_source", keys)
        if not keys or len(encoded) > LARGEST_PROPOSAL:
            raise self._bad("ctx.propose_source needs the keys of a source, 20 KB at most")
        if b"${" in encoded:
            raise self._bad("ctx.propose_source: a discovered source can't ask for variables")
        if len(self._attempt.effects.proposals) >= MOST_PROPOSED:
            raise self._bad(f"ctx.propose_source takes at most {MOST_PROPOSED:,} in one attempt")
        words = "".join(each for each in reason if each.isprintable())[:LONGEST_REASON]
        self._attempt.hold(len(encoded))
        self._attempt.effects.proposals.append(Proposed(key, encoded, words))

    def announce(self, at: datetime | float) -> None:
        """Expect a change at this time: a schedule with `near` runs more often around it.

        Only full and incremental runs do this; in other runs it has no effect.
        """
        self._attempt.guard()
        moment = self._moment(at)
        if not self._attempt.run.policy.announces_moments:
            return
        moments = self._attempt.effects.moments
        if moment in moments:
            return
        if len(moments) >= MOST_ANNOUNCED:
            raise self._bad(f"ctx.announce takes at most {MOST_ANNOUNCED:,} times in one attempt")
        moments.append(moment)

    def schema_verified(self) -> None:
        """Report that the source still has the expected shape (selectors, a mapping).

        It resets the time of `schema_freshness`. In probes and replays it has no effect.
        """
        self._attempt.guard()
        if self._attempt.run.policy.verifies_schemas:
            self._attempt.effects.is_schema_verified = True

    def spend(
        self,
        *,
        money: float = 0.0,
        requests: float = 0.0,
        bytes: float = 0.0,  # noqa: A002
        seconds: float = 0.0,
        reason: str = "",
    ) -> None:
        """Count this against the budgets of the run, the source and the project when the attempt ends.

        A failed attempt is charged too. `ctx.fetch` counts itself; use this for anything else: a paid API, a
        model, a proxy.
        """
        self._attempt.guard()
        amounts = {"money": money, "requests": requests, "bytes": bytes, "seconds": seconds}
        for measure, amount in amounts.items():
            if not is_number(amount) or amount < 0:
                raise self._bad(
                    f"ctx.spend needs {measure} from 0 to {LARGEST_NUMBER:g}, not {amount!r:.60}"
                )
        spent = self._attempt.effects.spent
        used = {measure: amount for measure, amount in amounts.items() if amount}
        for measure, amount in used.items():
            spent[measure] = spent.get(measure, 0.0) + amount
        if used and reason:
            words = ", ".join(f"{amount:g} {measure}" for measure, amount in used.items())
            self.note(f"spent {words}: {reason}")

    def note(self, text: str) -> None:
        """Write a note to the journal."""
        self._attempt.guard()
        # Cut to its length when secrets have been masked in it.
        line = words_of(text, LOOKED_AT)
        self._attempt.hold(len(line))
        self._attempt.effects.notes.append(Note(line))

    def commit(self) -> Awaitable[None]:
        """Make what is buffered so far durable, under this attempt's fence. A plain step waits."""
        return self._attempt.commit()

    def _record_key(self, collection: str, key: Any) -> str:
        if isinstance(key, str) and key:
            if not key.isascii():
                self._json(f"the key for {collection!r}", key)
            return bounded_key(key)
        if isinstance(key, int) and not isinstance(key, bool):
            return str(key)
        raise self._bad(
            f"ctx.save({collection!r}) needs a key that is text or a number, not {key!r}"
        )

    def _record_data(self, collection: str, data: Any) -> bytes:
        encoded = self._json(f"ctx.save({collection!r})", data)
        if not encoded.startswith(b"{"):
            raise self._bad(
                f"ctx.save({collection!r}) needs data with named fields, not {type(data).__name__}"
            )
        return encoded

    def _score(self, collection: str, score: Any) -> float | None:
        if score is None:
            return None
        if not is_number(score):
            raise self._bad(
                f"ctx.save({collection!r}) needs a score that is a number, not {score!r:.60}"
            )
        return float(score)

    def _moment(self, at: Any) -> float:
        if isinstance(at, datetime):
            if at.utcoffset() is None:
                raise self._bad(f"ctx.announce needs a time with a zone, not {at}")
            at = at.timestamp()
        if not is_number(at) or not 0 < at < END_OF_TIME:
            raise self._bad(
                "ctx.announce needs a datetime with a zone or UTC in seconds since the epoch, "
                f"not {at!r}"
            )
        return round(float(at), 3)
