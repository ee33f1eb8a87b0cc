"""What every home of snapshots promises, be it a folder, a shared one, or a bucket."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from penstock.errors import StoreCorrupt, StoreError
from penstock.snapshots import Capture, SegmentPlace, SnapshotStore, content_hash
from tests.snapshots.homes import SUFFIX, BucketHome, FolderHome, Home, a_page


def kept(store: SnapshotStore, *pages: Capture) -> list[SegmentPlace]:
    places = store.append(list(pages))
    store.sync()
    return places


def test_what_was_synced_is_read_again(home: Home) -> None:
    store = home.open()
    pages = [a_page(number, number * 100) for number in range(50)]
    places = kept(store, *pages)
    assert [store.read(place) for place in reversed(places)] == pages[::-1]
    assert [place.hash for place in places] == [content_hash(page.body) for page in pages]
    store.close()


def test_what_was_synced_is_there_for_everyone(home: Home) -> None:
    writer = home.open()
    [place] = kept(writer, a_page(1))
    reader = home.open("reader")
    assert reader.read(place) == a_page(1)
    [later] = kept(writer, a_page(2))
    assert reader.read(later) == a_page(2)
    writer.close()
    reader.close()


def test_closing_syncs(home: Home) -> None:
    store = home.open()
    [place] = store.append([a_page(1)])
    store.close()
    assert home.open("reader").read(place) == a_page(1)


def test_nothing_is_written_for_nothing(home: Home) -> None:
    store = home.open()
    assert store.append([]) == []
    store.sync()
    store.close()
    assert home.files() == {}


def test_writers_of_one_name_at_once_never_share_a_segment(home: Home) -> None:
    stores = [home.open("same") for _ in range(4)]
    places: list[list[SegmentPlace]] = [[] for _ in stores]

    def write(number: int) -> None:
        for page in range(10):
            places[number] += kept(stores[number], a_page(100 * number + page))

    run_all([partial(write, number) for number in range(4)])
    segments = [{place.segment for place in mine} for mine in places]
    assert sum(map(len, segments)) == len(set().union(*segments))
    for number, mine in enumerate(places):
        read = [stores[number - 1].read(place) for place in mine]
        assert read == [a_page(100 * number + page) for page in range(10)]


def run_all(acts: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_one_may_read_while_another_thread_writes(home: Home) -> None:
    store = home.open()
    places = kept(store, *(a_page(number) for number in range(20)))
    read: list[Capture] = []

    def write() -> None:
        for number in range(20):
            kept(store, a_page(100 + number))

    run_all([write, lambda: read.extend(store.read(place) for place in places)])
    assert read == [a_page(number) for number in range(20)]


def test_web_archive_tools_can_read_every_segment(home: Home) -> None:
    store = home.open()
    kept(store, a_page(1), a_page(2, 5000))
    kept(store, a_page(3))
    store.close()
    found = []
    for name, data in sorted(home.files().items()):
        assert name.endswith(SUFFIX)
        records = ArchiveIterator(io.BytesIO(data), check_digests="raise", verify_http=True)
        kinds = []
        for record in records:
            kinds.append(record.rec_type)
            if record.rec_type == "response":
                found.append(record.content_stream().read())
        assert kinds[0] == "warcinfo"
        assert set(kinds[1:]) == {"response"}
    assert found == [a_page(1).body, a_page(2, 5000).body, a_page(3).body]


def test_damage_is_noticed(home: Home) -> None:
    store = home.open()
    place = kept(store, a_page(1), a_page(2), a_page(3))[1]
    [(name, whole)] = home.files().items()
    # Of a gzip header, time, flags and system may change without changing what it holds.
    for at in range(place.offset + 10, place.offset + place.length, 9):
        home.write(name, whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with pytest.raises(StoreCorrupt):
            store.read(place)
    home.write(name, whole)
    assert store.read(place) == a_page(2)


def test_a_segment_that_is_cut_off_has_what_lies_before_the_cut(home: Home) -> None:
    store = home.open()
    before, torn, after = kept(store, a_page(1), a_page(2), a_page(3))
    [(name, whole)] = home.files().items()
    for end in (torn.offset, torn.offset + 1, torn.offset + torn.length - 1):
        home.write(name, whole[:end])
        assert store.read(before) == a_page(1)
        for lost in (torn, after):
            with pytest.raises(StoreCorrupt):
                store.read(lost)


def test_a_record_of_another_content_is_not_taken_for_this_one(home: Home) -> None:
    store = home.open()
    one, two = kept(store, a_page(1), a_page(2))
    for wrong in (
        replace(one, hash=two.hash),
        replace(one, offset=two.offset, length=two.length),
        replace(one, length=one.length - 1),
        replace(one, length=one.length + 1),
        replace(one, length=one.length + two.length),
        replace(one, length=0),
        replace(one, length=-1),
        replace(one, offset=-1),
        replace(one, offset=0),
        replace(two, length=two.length + 1),
        replace(two, offset=10**12),
    ):
        with pytest.raises(StoreCorrupt):
            store.read(wrong)


NAMES = [
    "",
    ".",
    "..",
    "../x",
    "/etc/passwd",
    "a\0b",
    "%2e%2e",
    "%2e%2e%2f0123456789abcdef-000001",
    "../0123456789abcdef-000001",
    "0123456789abcdef-000001/../0123456789abcdef-000001",
    "0123456789abcdef-000001.warc.gz",
    "0123456789abcdef-000001\n",
    "x" * 5000,
    "\ud800",
    "ｆ" * 16 + "-000001",
]


@pytest.mark.parametrize("name", NAMES, ids=[f"name{number}" for number in range(len(NAMES))])
def test_no_name_from_outside_leads_anywhere(home: Home, name: str) -> None:
    store = home.open()
    kept(store, a_page(1))
    home.write(f"0123456789abcdef-000001{SUFFIX}", b"not ours")
    before = home.files()
    with pytest.raises(StoreCorrupt):
        store.read(SegmentPlace("0" * 64, name, 0, 10))
    with pytest.raises(StoreError):
        store.remove([name])
    assert home.files() == before


def test_no_writer_can_name_a_segment(home: Home) -> None:
    for writer in ("../../evil", "a/b", "\n", "w" * 500):
        store = home.open(writer)
        kept(store, a_page(1))
        store.close()
    names = [name.removesuffix(SUFFIX) for name in home.files()]
    assert len(names) == 4
    assert all(len(name) == 23 and set(name) <= set("0123456789abcdef-") for name in names)


def test_segments_are_those_of_every_writer_and_nothing_else(home: Home) -> None:
    stores = [home.open(writer) for writer in ("one", "two")]
    for number, store in enumerate(stores):
        kept(store, a_page(number))
    expected = {name.removesuffix(SUFFIX): len(data) for name, data in home.files().items()}
    assert len(expected) == 2
    for name in ("notes.txt", "0123456789abcdef-000001", "0123456789abcdef-1.warc.gz"):
        home.write(name, b"x")
    home.write(f"below/0123456789abcdef-000001{SUFFIX}", b"x")
    assert dict(stores[0].segments()) == expected


def test_removed_segments_are_gone_and_the_others_stay(home: Home) -> None:
    store = home.open(max_bytes=1)
    places = [place for number in range(4) for place in kept(store, a_page(number))]
    gone, stays = places[:2], places[2:]
    for _ in range(2):
        store.remove([place.segment for place in gone])
    for place in gone:
        with pytest.raises(StoreCorrupt):
            store.read(place)
    assert [store.read(place) for place in stays] == [a_page(2), a_page(3)]
    store.remove([])


def test_a_full_segment_is_followed_by_the_next(home: Home) -> None:
    store = home.open(max_bytes=1000)
    places = kept(store, *(a_page(number) for number in range(20)))
    for number in range(20, 40):
        places += kept(store, a_page(number))
    assert len({place.segment for place in places}) > 3
    assert [store.read(place) for place in places] == [a_page(number) for number in range(40)]
    assert {f"{place.segment}{SUFFIX}" for place in places} == set(home.files())


def test_a_home_that_is_there_passes_its_check(home: Home) -> None:
    store = home.open()
    store.check()
    kept(store, a_page(1))
    store.check()


def test_names_are_never_used_again(home: Home, tmp_path: Path) -> None:
    store = home.open(max_bytes=1)
    seen = set()
    for number in range(5):
        [place] = kept(store, a_page(number))
        assert place.segment not in seen
        seen.add(place.segment)
        home.open("upkeep").remove([place.segment])


def test_segments_can_be_moved_to_another_home_as_they_are(
    home: Home, bucket: BucketHome, tmp_path: Path
) -> None:
    store = home.open()
    places = kept(store, a_page(1), a_page(2)) + kept(store, a_page(3))
    store.close()
    folder = FolderHome(tmp_path / "moved")
    folder.open().close()
    for other in (bucket, folder):
        for name, data in home.files().items():
            other.write(name, data)
        moved = other.open("reader")
        assert [moved.read(place) for place in places] == [a_page(1), a_page(2), a_page(3)]
        assert dict(moved.segments()) == dict(home.open("reader").segments())
