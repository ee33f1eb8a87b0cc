"""Packs and trees of strangers: read as git writes them, and within bounds however they are made."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.repo import Repo

from penstock.connectors.github.addresses import Part
from penstock.connectors.github.git import packs, protocol
from penstock.connectors.github.git.tree_walk import entries_of
from penstock.connectors.github.keys import GitHubKeys
from penstock.connectors.github.trees import Chosen
from penstock.jobs.failures import BadData, Permanent
from tests.connectors.git_server import GitServer
from tests.hostile.costs import growth

ALL = frozenset({packs.COMMIT, packs.TREE, packs.BLOB, packs.TAG})
TREES = frozenset({packs.COMMIT, packs.TREE})
MUCH = 50_000_000


def head(kind: int, size: int) -> bytes:
    made, size = [(kind << 4) | (size & 15)], size >> 4
    while size:
        made[-1] |= 128
        made.append(size & 127)
        size >>= 7
    return bytes(made)


def entry(kind: int, data: bytes, size: int | None = None, base: bytes = b"") -> bytes:
    return head(kind, len(data) if size is None else size) + base + zlib.compress(data)


def pack(*entries: bytes) -> bytes:
    body = b"PACK" + (2).to_bytes(4, "big") + len(entries).to_bytes(4, "big") + b"".join(entries)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def test_a_pack_that_git_made_has_every_object_as_git_has_it(tmp_path: Path) -> None:
    server = GitServer(tmp_path)
    for turn in range(12):
        for number in range(30):
            text = f"line {number}\n" * 50 + f"turn {turn}\n" * (number % 7)
            server.files[f"folder/{number % 4}/{number}.txt"] = text.encode()
        server.commit()
    repository = Repo(str(server.path))
    store = repository.object_store
    expected = {name.decode(): store.get_raw(name)[1] for name in store}
    repository.close()
    listed = subprocess.run(
        ["git", "pack-objects", "--stdout", "--progress", "--delta-base-offset"],
        cwd=server.path,
        input="\n".join(expected).encode(),
        capture_output=True,
        check=True,
    )
    assert re.search(rb"\(delta [1-9]", listed.stderr)
    assert packs.objects_of(listed.stdout, MUCH, ALL) == expected
    trees = packs.objects_of(listed.stdout, MUCH, TREES)
    assert trees.items() < expected.items()


BASE = b"x" * 1000
# A copy of all of the base, which takes three bytes, a hundred thousand times.
COPIES = (
    varint(1000)
    + varint(1000)
    + (bytes([0x80 | 0x10 | 0x20]) + (1000).to_bytes(2, "little")) * 100_000
)
NEAR = bytes([len(entry(packs.BLOB, BASE))])
HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "no pack": b"<html>" * 10,
    "a wrong checksum": pack(entry(packs.BLOB, b"x"))[:-1] + b"?",
    "fewer objects than it says": pack(b"", b""),
    "an object of no kind": pack(entry(5, b"x")),
    "a size without end": pack(b"\xff" * 40),
    "more than it says": pack(entry(packs.BLOB, b"x" * 20_000_000, size=10)),
    "less than it says": pack(entry(packs.BLOB, b"x", size=10)),
    "more than is read": pack(head(packs.BLOB, 10 * MUCH) + zlib.compress(b"x")),
    "not packed": pack(head(packs.BLOB, 10) + b"0123456789"),
    "cut off": pack(entry(packs.BLOB, b"x" * 100)[:-10]),
    "a delta of nothing": pack(entry(packs.OFFSET_DELTA, b"\1\1\1", base=b"\x7f")),
    "a delta of itself": pack(entry(packs.OFFSET_DELTA, b"\1\1\1", base=b"\0")),
    "a delta of a stranger": pack(entry(packs.NAMED_DELTA, b"\1\1\1", base=b"?" * 20)),
    "a delta that copies without end": pack(
        entry(packs.BLOB, BASE), entry(packs.OFFSET_DELTA, COPIES, base=NEAR)
    ),
    "a delta that is larger than is read": pack(
        entry(packs.BLOB, BASE),
        entry(packs.OFFSET_DELTA, varint(1000) + varint(10 * MUCH) + b"\1x", base=NEAR),
    ),
    "a delta that copies from behind the end": pack(
        entry(packs.BLOB, BASE),
        entry(packs.OFFSET_DELTA, varint(1000) + varint(9) + b"\x93\xff\xff\x09", base=NEAR),
    ),
    "a delta that does nothing": pack(
        entry(packs.BLOB, BASE),
        entry(packs.OFFSET_DELTA, varint(1000) + varint(9) + b"\0" * 50, base=NEAR),
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pack_is_refused_and_takes_no_memory(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadData):
            packs.objects_of(HOSTILE[name], MUCH, ALL)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_bomb_unpacks_to_no_more_than_is_read_also_where_nothing_of_it_is_kept() -> None:
    bomb = entry(packs.BLOB, b"\0" * 10_000_000)
    for wanted in (ALL, TREES):
        with pytest.raises(BadData, match="unpacks to more than is read"):
            packs.objects_of(pack(*[bomb] * 20), MUCH, wanted)


COSTLY: dict[str, Callable[[int], bytes]] = {
    "small objects": lambda n: pack(*[entry(packs.BLOB, b"%d" % i) for i in range(500 * n)]),
    "one object": lambda n: pack(entry(packs.BLOB, bytes(range(256)) * 2_000 * n)),
    "copies": lambda n: pack(
        entry(packs.BLOB, BASE),
        entry(
            packs.OFFSET_DELTA,
            varint(1000) + varint(1000 * n) + (b"\x90\x01" * 1000 * n),
            base=NEAR,
        ),
    ),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_pack_takes_time_in_proportion_to_its_length(name: str) -> None:
    one, four = COSTLY[name](1), COSTLY[name](4)
    small, large = growth(
        lambda: packs.objects_of(one, MUCH, ALL),
        lambda: packs.objects_of(four, MUCH, ALL),
        rounds=3,
    )
    assert large < 12 * small + 0.02


def tree(*entries: tuple[bytes, bytes, str]) -> bytes:
    return b"".join(mode + b" " + name + b"\0" + bytes.fromhex(sha) for mode, name, sha in entries)


def walked(objects: dict[str, bytes]) -> list[str]:
    chosen = Chosen(GitHubKeys(url="x"))
    return [item.key for item in chosen.items(entries_of(objects.__getitem__, "c"), Part("s", ""))]


def test_trees_that_name_each_other_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten levels of ten names for the same tree below are 40 lines, and ten thousand million paths."""
    monkeypatch.setattr("penstock.connectors.github.trees.MOST_ENTRIES", 2_000)
    names = [f"{level:040x}" for level in range(11)]
    objects = {"c": f"tree {names[0]}\n".encode()}
    for level, name in enumerate(names[:-1]):
        objects[name] = tree(*[(b"40000", b"%d" % i, names[level + 1]) for i in range(10)])
    objects[names[-1]] = tree((b"100644", b"f", "ab" * 20))
    with pytest.raises(BadData, match="more than 2,000 entries"):
        walked(objects)
    circle = {"c": f"tree {names[0]}\n".encode(), names[0]: tree((b"40000", b"again", names[0]))}
    with pytest.raises(BadData, match="nested too deeply"):
        walked(circle)


@pytest.mark.parametrize("broken", [b"100644 x", b"100644 x\0short", b"abc x\0" + b"?" * 20, b"\0"])
def test_a_broken_tree_is_bad_data(broken: bytes) -> None:
    with pytest.raises(BadData):
        walked({"c": b"tree " + b"1" * 40 + b"\n", "1" * 40: broken})
    with pytest.raises(BadData):
        walked({"c": broken})


def test_what_the_server_says_went_wrong_is_told_in_one_line() -> None:
    told = protocol.line("packfile") + b"0011\3not our ref\n" + protocol.FLUSH
    with pytest.raises(Permanent, match=r"the git server says: not our ref$"):
        protocol.pack_of(told)
    for odd in (b"zzzz", b"0003", b"ffff" + b"x" * 10, b"00"):
        with pytest.raises(BadData):
            list(protocol.lines_of(odd))
