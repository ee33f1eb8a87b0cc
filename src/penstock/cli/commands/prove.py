"""`penstock prove`: kill it on purpose, on this machine and with these settings, and see what survives."""

from __future__ import annotations

import argparse
import random
import signal
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json, whole_number
from penstock.cli.render.output import Output
from penstock.cli.render.tables import text
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app.views.proof import ProofView, ProvedSceneView

DESCRIPTION = """\
Kill, stop and fault Penstock on this machine and print what survived: kill -9 of worker, supervisor or both;
SIGSTOP beyond the lease; a full disk; a site that drops, resets and hangs; a clock that is set forward and
back; kills, power cuts and disk errors at single writes. It runs in a scratch project with this project's
store, snapshots, worker settings and concurrency: on SQLite in a folder beside the database, on Postgres in
schemas of its own on the same server. Both are removed afterwards. The data, code and sources of the
project are never touched, and all requests go to a site on loopback.

Without --minutes each scene is played once, which takes two to four minutes. With --minutes the scenes are
repeated, with other moments, until the time is over.

Exit codes: 0 everything that was tested held, 3 nothing could be tested, or a scene was struck less often
than it should be, 4 a promise did not hold, 130 interrupted (the scratch project is removed)."""
EXAMPLES = """\
  penstock prove
  penstock prove --kills 100 --minutes 15
  penstock prove --only kills,clock --seed 7
  penstock prove --json"""
SCENES = ("kills", "network", "clock", "writes", "disk", "stops", "server")
LONGEST_MINUTES = 7 * 24 * 60
SHOWN = 10
TOO_LITTLE = ", but too little was tested: give it more --minutes"
STATES = {"held": "held", "broken": "BROKEN", "not_tested": "not tested"}


def register(commands: Commands) -> None:
    parser = add_command(commands, "prove", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--minutes",
        type=_minutes,
        metavar="N",
        help="go on for N minutes (one round of each scene)",
    )
    parser.add_argument(
        "--kills", type=whole_number, default=20, metavar="N", help="kills in a round (20)"
    )
    parser.add_argument("--seed", type=_seed, metavar="N", help="random seed (a new one, printed)")
    parser.add_argument(
        "--only", type=_scenes, default=(), metavar="SCENES", help=f"of {', '.join(SCENES)}"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def _minutes(word: str) -> float:
    try:
        minutes = float(word)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= LONGEST_MINUTES:
        raise argparse.ArgumentTypeError(f"{word!r:.40} is not a number of minutes")
    return minutes


def _seed(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r:.40} is not a whole number") from None


def _scenes(words: str) -> tuple[str, ...]:
    from penstock.cli.parser import one_of

    return tuple(one_of("scene", SCENES, word.strip()) for word in words.split(","))


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    out: Output = args.out
    seed = random.randrange(1 << 32) if args.seed is None else args.seed
    with opened(args) as project, Interruption(out) as interruption:
        out.note(f"seed {seed}; Ctrl-C stops and cleans up")
        proof = project.prove(
            kills=args.kills,
            minutes=args.minutes,
            seed=seed,
            only=args.only,
            on_progress=interruption.progress,
        )
    if args.json:
        out.json(proof.as_json())
    else:
        _tell(proof, out)
    if proof.broken:
        return exits.FAILED
    return exits.DONE if proof.held and not proof.thin else exits.PARTIAL


class Interruption:
    """Ctrl-C and SIGTERM end a proof, and clean up; a context manager.

    An interrupt may strike inside a call of the database, which makes an error of its own of it: so the next
    progress raises it again.
    """

    def __init__(self, out: Output) -> None:
        self._out = out
        self._has_come = False
        self._before: list[Any] = []

    def __enter__(self) -> Interruption:
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._before = [(number, signal.signal(number, self._come)) for number in numbers]
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before:
            signal.signal(number, before)

    def _come(self, number: int, frame: Any) -> None:
        self._has_come = True
        raise KeyboardInterrupt

    def progress(self, scene: str, what: str) -> None:
        if self._has_come:
            raise KeyboardInterrupt
        self._out.note(f"{scene}: {what}")


COLUMNS = (
    text("scene", 0, 8), text("result", 0, 10), "faults", "records", "lost", "duplicated",
    "unfinished", "requests", "counted", text("recovery", 1, 14),
)  # fmt: skip


def _tell(proof: ProofView, out: Output) -> None:
    out.line(
        f"store {proof.store}, synchronous {proof.synchronous}, snapshots in {_place(proof.snapshots)}, "
        f"concurrency {proof.concurrency}"
    )
    out.line()
    out.table(COLUMNS, [_row(scene) for scene in proof.tested])
    out.line()
    for scene in proof.tested:
        out.line(f"{scene.scene}: {scene.title}. {scene.text}")
    for scene in proof.scenes:
        if scene.state == "not_tested":
            out.line(f"{scene.scene}: NOT TESTED: {scene.title}: {scene.text}")
    for scene in proof.broken:
        out.line()
        out.line(f"{scene.scene}: {count(len(scene.violations), 'promise')} did not hold:")
        for violation in scene.violations[:SHOWN]:
            out.line(f"  {violation}")
        if len(scene.violations) > SHOWN:
            out.line(f"  and {len(scene.violations) - SHOWN} more: --json has them all")
    out.line()
    out.line(f"{_verdict(proof)}; {proof.seconds:.0f} s; seed {proof.seed}")


def _place(snapshots: str) -> str:
    return "a folder" if snapshots == "folder" else snapshots


def _row(scene: ProvedSceneView) -> tuple[object, ...]:
    requests = (scene.requests, scene.counted) if scene.requests else ("", "")
    records = (scene.records, scene.lost, scene.duplicated, scene.unfinished)
    recovery = scene.recovery
    took = f"{recovery.median_s:g} s, {recovery.longest_s:g} s" if recovery.count else ""
    known: tuple[object, ...] = records if scene.records else ("", "", "", "")
    faults = scene.faults if scene.faults >= scene.wanted else f"{scene.faults} of {scene.wanted}"
    return (scene.scene, STATES[scene.state], faults, *known, *requests, took)


def _verdict(proof: ProofView) -> str:
    if proof.broken:
        return f"NOT everything held: {', '.join(scene.scene for scene in proof.broken)}"
    if not proof.held:
        return "nothing could be tested"
    return f"everything that was tested held{TOO_LITTLE if proof.thin else ''}"
