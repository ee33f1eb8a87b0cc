"""Jobs: keys that are equal for equal items, in every process; effects that are handed over once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.jobs.effects import Effects, Mark, Note, Raised, Rejection, Save
from penstock.jobs.job import KEY_LENGTH, NewJob, bounded_key, canonical_key
from penstock.jobs.outcome import Reject, Skip, Snooze

SOURCE = Path(__file__).parents[2] / "src"

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text()
)
items = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


def shuffled(value: Any) -> Any:
    """The same item with the fields of its objects in another order."""
    if isinstance(value, dict):
        return {name: shuffled(inner) for name, inner in reversed(list(value.items()))}
    if isinstance(value, list):
        return [shuffled(inner) for inner in value]
    return value


@given(items)
def test_equal_items_have_equal_keys_whatever_the_order_of_their_fields(item: Any) -> None:
    assert canonical_key(item) == canonical_key(shuffled(item))


@given(items, items)
def test_unequal_items_have_unequal_keys(one: Any, other: Any) -> None:
    # As they are once stored: JSON has one kind of number, and no infinity.
    stored = [msgspec.json.decode(msgspec.json.encode(value)) for value in (one, other)]
    is_same = repr(_plain(stored[0])) == repr(_plain(stored[1]))

    assert (canonical_key(one) == canonical_key(other)) == is_same


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (float, list, dict)):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return "object", sorted((name, _plain(inner)) for name, inner in value.items())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"n": 1}, {"n": 1.0}),
        ({"n": 0.0}, {"n": -0.0}),
        ([(1, 2)], [[1, 2]]),
        ({1: "x"}, {"1": "x"}),
    ],
)
def test_spellings_of_one_item_have_one_key(one: Any, other: Any) -> None:
    assert canonical_key(one) == canonical_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"n": 1}, {"n": "1"}),
        ({"n": 1}, {"n": True}),
        ({"n": 1}, {"n": 1.5}),
        ({"a": None}, {}),
        (["a", "b"], ["ab"]),
        ([[1], 2], [1, [2]]),
        ("é", "e\u0301"),
    ],
)
def test_items_that_only_look_alike_have_keys_of_their_own(one: Any, other: Any) -> None:
    assert canonical_key(one) != canonical_key(other)


def test_key_is_the_same_in_every_process_and_version() -> None:
    """A key that changes makes every known job look new: this one is written down."""
    item = {"url": "https://acme.com/ä", "n": [1, 2.5, None, True], "deep": {"b": 1, "a": {}}}
    program = (
        "import sys; from penstock.jobs.job import canonical_key;"
        f"sys.stdout.write(canonical_key({item!r}))"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "4711")
    ]

    assert found == ["1:3d68e430466b27a5eb06256f14dacfb4"] * 2


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_bounded_key_can_always_be_stored(key: str) -> None:
    bounded = bounded_key(key)

    assert len(bounded) <= KEY_LENGTH
    assert "\x00" not in bounded
    bounded.encode()
    assert bounded_key(bounded) == bounded


@given(st.text(alphabet="ab\x00\ud800", max_size=6), st.text(alphabet="ab\x00\ud800", max_size=6))
def test_bounded_keys_are_equal_only_for_equal_keys(one: str, other: str) -> None:
    assert (bounded_key(one) == bounded_key(other)) == (one == other)


def test_long_keys_that_begin_alike_stay_apart() -> None:
    start = "k" * 1000
    keys = {bounded_key(start + str(number)) for number in range(100)}

    assert len(keys) == 100
    assert bounded_key("k" * KEY_LENGTH) == "k" * KEY_LENGTH


def test_effects_are_handed_over_once() -> None:
    effects = Effects(
        children=[NewJob("s", "k", b"1")], saves=[Save("c", "k", b"1", None, "keep")],
        marks=[Mark("p", b"1")], signals=[Raised("x", b"1")], notes=[Note("n")],
        rejections=[Rejection("c", "r")], is_dropped=True,
    )  # fmt: skip

    taken = effects.take()

    assert (len(taken.children), len(taken.saves), len(taken.marks)) == (1, 1, 1)
    assert (len(taken.signals), len(taken.notes), len(taken.rejections)) == (1, 1, 1)
    assert taken.is_dropped
    assert taken
    assert not effects
    effects.notes.append(Note("later"))
    assert len(taken.notes) == 1


@pytest.mark.parametrize(
    "effects",
    [
        Effects(children=[NewJob("s", "k", b"1")]),
        Effects(saves=[Save("c", "k", b"1", None, "keep")]),
        Effects(marks=[Mark("p", b"1")]),
        Effects(signals=[Raised("x", b"1")]),
        Effects(notes=[Note("n")]),
        Effects(rejections=[Rejection("c", "r")]),
        Effects(is_dropped=True),
        Effects(saved_before=1),
    ],
)
def test_effects_of_any_kind_count_as_something(effects: Effects) -> None:
    assert effects
    assert not Effects()


def test_what_a_step_raises_says_why() -> None:
    assert str(Skip("gone")) == "gone"
    assert Reject("too cheap").reason == "too cheap"
    assert str(Snooze(60)) == "snoozed for 60 s"
    assert (Snooze(5, "market is shut").delay_s, str(Snooze(5, "shut"))) == (5, "shut")
