"""The sweep: each scene once, and again while there is time; and what it came to."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.errors import PenstockError, UsageError, nearest
from penstock.prove.processes import CLOCK
from penstock.prove.scenes import SCENES
from penstock.prove.scenes.stage import Scene, Stage
from penstock.prove.scratch import LEAST_FREE_BYTES, Scratch, Terms, free_bytes
from penstock.prove.site import Site
from penstock.prove.verdict import Verdict
from penstock.settings import Settings

USUAL_KILLS = 20
LARGEST_SEED = 1 << 32
MORE = "a busy machine needs more --minutes"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for: how many kills, how long, which scenes, and the seed that chooses the moments."""

    kills: int = USUAL_KILLS
    minutes: float | None = None
    seed: int = 0
    only: tuple[str, ...] = ()

    def scenes(self) -> list[Scene]:
        for name in self.only:
            if name not in SCENES:
                raise UsageError(f"there is no scene {name!r}", nearest(name, SCENES))
        return [scene for name, scene in SCENES.items() if not self.only or name in self.only]


@dataclass(slots=True)
class Proof:
    """What all scenes came to."""

    seed: int
    terms: Terms
    verdicts: list[Verdict] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def held(self) -> bool:
        """Whether something was tried, and all of it held."""
        states = {verdict.state for verdict in self.verdicts}
        return "broken" not in states and "held" in states

    @property
    def is_thin(self) -> bool:
        """Whether a scene that was begun was struck never, or less often than it was to be."""
        return any(verdict.is_thin or verdict.is_missed for verdict in self.verdicts)


def prove(
    settings: Settings, plan: Plan, tell: Callable[[str, str], None] = lambda scene, what: None
) -> Proof:
    """Play the scenes, one after the other. Whatever ends it, nothing of the scratch project is left."""
    scenes = plan.scenes()
    began = CLOCK.monotonic()
    ends_at = began + plan.minutes * 60 if plan.minutes is not None else float("inf")
    with Scratch(settings) as scratch, Site() as site:
        _refuse_small_disk(scratch)
        scratch.try_out()
        proof = Proof(plan.seed, scratch.terms())
        rounds = 0
        while True:
            for scene in _due(scenes, rounds, proof.verdicts):
                # The same seed strikes at the same moments, whichever other scenes are played.
                rng = random.Random(f"{plan.seed} {scene.name} {rounds}")
                stage = Stage(
                    scratch, site, rng, plan.kills,
                    lambda what, name=scene.name: tell(name, what), ends_at,  # type: ignore[misc]
                )  # fmt: skip
                verdict = _played(scene, stage)
                _take(proof.verdicts, verdict, rounds)
                round_word = f"{verdict.state} in round {rounds + 1}" if rounds else verdict.state
                tell(scene.name, round_word)
            rounds += 1
            if plan.minutes is None or not any(
                _has_time(scene, ends_at) for scene in _due(scenes, rounds, proof.verdicts)
            ):
                break
    proof.seconds = CLOCK.monotonic() - began
    return proof


def _due(scenes: Sequence[Scene], rounds: int, verdicts: Sequence[Verdict]) -> list[Scene]:
    """All of them first; after that those that held, and that another round may find more with."""
    if not rounds:
        return [*scenes]
    held = {verdict.scene for verdict in verdicts if verdict.state == "held"}
    return [scene for scene in scenes if scene.is_repeated and scene.name in held]


def _has_time(scene: Scene, ends_at: float) -> bool:
    return ends_at - CLOCK.monotonic() >= scene.least_s


def _played(scene: Scene, stage: Stage) -> Verdict:
    """The verdict on one round. What a scene waits for in vain is a promise that did not hold."""
    reason = scene.why_not(stage)
    if not reason and stage.left_s < scene.least_s:
        reason = "no time was left: more --minutes"
    if reason:
        return Verdict(scene.name, scene.title, "not_tested", reason)
    stage.tell("begins")
    began = CLOCK.monotonic()
    try:
        verdict = scene.play(stage)
    except (AssertionError, PenstockError) as error:
        verdict = Verdict(scene.name, scene.title, rounds=1)
        verdict.wrong(str(error))
    verdict.seconds = CLOCK.monotonic() - began
    if verdict.state == "held" and not verdict.faults:
        verdict.state, verdict.is_missed = "not_tested", True
        verdict.text = f"nothing was hit before the work was done; {MORE}"
    return verdict


def _take(verdicts: list[Verdict], verdict: Verdict, rounds: int) -> None:
    known = next((each for each in verdicts if each.scene == verdict.scene), None)
    if known is None:
        verdicts.append(verdict)
    elif verdict.state != "not_tested":
        known.add(verdict)


def _refuse_small_disk(scratch: Scratch) -> None:
    free = free_bytes(scratch.folder)
    if free < LEAST_FREE_BYTES:
        raise UsageError(
            f"{scratch.folder.parent} has {free // 1_000_000} MB left, too little for the scratch project",
            f"free some space: {LEAST_FREE_BYTES // 1_000_000} MB are needed",
        )
