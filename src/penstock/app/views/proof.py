"""What a proof came to, as front ends see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.views.view import View

if TYPE_CHECKING:
    from penstock.prove.sweep import Proof
    from penstock.prove.verdict import Verdict


class RecoveryView(View, frozen=True, kw_only=True):
    """How long it took after a kill until a new worker began a job; None where none was seen."""

    count: int
    median_s: float | None
    longest_s: float | None


class ProvedSceneView(View, frozen=True, kw_only=True):
    """One kind of fault: `state` is held, broken or not_tested, and `text` says what was done, or why not.

    `lost` and `duplicated` are records; `unfinished` are pages. `requests` were counted by the site that was
    asked, and `counted` by the budget. `faults` are kills, steps of the clock, pages that failed, and so on;
    `wanted` is how many the first round was to have.
    """

    scene: str
    title: str
    state: str
    text: str
    rounds: int
    faults: int
    wanted: int
    records: int
    lost: int
    duplicated: int
    unfinished: int
    requests: int
    counted: int
    recovery: RecoveryView
    violations: list[str]
    seconds: float


class ProofView(View, frozen=True, kw_only=True):
    """What all scenes came to. `held`: something was tried, and all of it held.

    `thin`: a scene that was begun was struck never, or less often than it was to be. The first keys say what
    was taken over from the project.
    """

    held: bool
    thin: bool
    seed: int
    store: str
    synchronous: str
    snapshots: str
    concurrency: int
    seconds: float
    scenes: list[ProvedSceneView]

    @property
    def broken(self) -> list[ProvedSceneView]:
        """The scenes in which a promise did not hold."""
        return [scene for scene in self.scenes if scene.state == "broken"]

    @property
    def tested(self) -> list[ProvedSceneView]:
        """The scenes that could be played."""
        return [scene for scene in self.scenes if scene.state != "not_tested"]


def proof_view(proof: Proof) -> ProofView:
    terms = proof.terms
    return ProofView(
        held=proof.held,
        thin=proof.is_thin,
        seed=proof.seed,
        store=terms.store,
        synchronous=terms.synchronous,
        snapshots=terms.snapshots,
        concurrency=terms.concurrency,
        seconds=round(proof.seconds, 1),
        scenes=[_scene_view(each) for each in proof.verdicts],
    )


def _scene_view(verdict: Verdict) -> ProvedSceneView:
    same = (
        "scene", "title", "state", "text", "rounds", "faults", "wanted", "records", "lost", "duplicated",
        "unfinished", "requests", "counted", "violations",
    )  # fmt: skip
    ordered = sorted(verdict.recoveries_s)
    recovery = RecoveryView(
        count=len(ordered),
        median_s=round(ordered[len(ordered) // 2], 2) if ordered else None,
        longest_s=round(ordered[-1], 2) if ordered else None,
    )
    return ProvedSceneView(
        **{name: getattr(verdict, name) for name in same},
        recovery=recovery,
        seconds=round(verdict.seconds, 1),
    )
