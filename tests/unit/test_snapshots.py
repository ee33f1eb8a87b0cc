"""Snapshots: what was fetched can be had again, or is known to be damaged."""

from __future__ import annotations

import errno
import os
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from penstock.errors import StoreCorrupt, StoreError, StoreFull
from penstock.snapshots import Capture, SegmentPlace, SnapshotsAway, content_hash
from penstock.snapshots.directory import DirectorySnapshots
from penstock.snapshots.warc import (
    HELD_UNCHECKED,
    BadRecord,
    pack_response,
    unpack_response,
)

PAGE = Capture(
    url="https://shop.example/a?b=1",
    status=200,
    headers={"content-type": "text/html", "content-encoding": "gzip", "content-length": "7"},
    body=b"<p>hello</p>",
    fetched_at=1_700_000_000.123456,
)


def a_page(number: int, size: int = 10) -> Capture:
    return replace(PAGE, url=f"https://shop.example/{number}", body=b"%d " % number * size)


def files(root: Path) -> list[Path]:
    return sorted(root.iterdir())


def test_what_is_appended_is_read_again(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    pages = [a_page(n, n * 100) for n in range(50)]
    places = store.append(pages)
    store.sync()
    assert [store.read(place) for place in reversed(places)] == pages[::-1]
    assert [place.hash for place in places] == [content_hash(page.body) for page in pages]
    store.close()


def test_another_process_reads_it_and_appends_beside_it(tmp_path: Path) -> None:
    first = DirectorySnapshots(tmp_path, "one")
    [old] = first.append([PAGE])
    first.close()
    second = DirectorySnapshots(tmp_path, "one")
    [new] = second.append([PAGE])
    assert old.segment != new.segment
    assert second.read(old) == second.read(new) == PAGE
    second.close()


def test_two_writers_of_one_name_never_share_a_segment(tmp_path: Path) -> None:
    one, two = DirectorySnapshots(tmp_path, "same"), DirectorySnapshots(tmp_path, "same")
    [first], [second] = one.append([a_page(1)]), two.append([a_page(2)])
    assert first.segment != second.segment
    assert one.read(second) == a_page(2)
    one.close()
    two.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    url=st.text(st.characters(), min_size=1, max_size=60),
    status=st.integers(100, 599),
    headers=st.dictionaries(st.text(max_size=20), st.text(max_size=60), max_size=4),
    body=st.binary(max_size=300),
    at=st.integers(0, 4_000_000_000),
)
def test_nothing_from_outside_can_break_a_record(
    tmp_path: Path, url: str, status: int, headers: dict[str, str], body: bytes, at: int
) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    before, place, after = store.append(
        [a_page(1), Capture(url, status, headers, body, at), a_page(2)]
    )
    capture = store.read(place)
    assert (capture.status, capture.body, capture.fetched_at) == (status, body, at)
    assert (store.read(before), store.read(after)) == (a_page(1), a_page(2))
    store.close()


def test_a_line_break_from_outside_forges_no_header(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    evil = replace(
        PAGE,
        url="https://a/\r\nWARC-Target-URI: https://evil/",
        headers={"x": "1\r\ny: 2\r\n\r\n<b>", "z\r\nw": "3"},
    )
    capture = store.read(*store.append([evil]))
    assert capture.url == "https://a/  WARC-Target-URI: https://evil/"
    assert capture.headers == {"x": "1  y: 2    <b>", "z  w": "3"}
    assert capture.body == PAGE.body
    store.close()


def test_web_archive_tools_can_read_a_segment(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    store.append([PAGE, a_page(1), a_page(2, 5000)])
    store.close()
    [segment] = files(tmp_path)
    with segment.open("rb") as file:
        found = []
        for record in ArchiveIterator(file, check_digests="raise", verify_http=True):
            if record.rec_type == "response":
                body = record.content_stream().read()
                uri = record.rec_headers.get_header("WARC-Target-URI")
                found.append((uri, record.http_headers.get_statuscode(), body))
            else:
                assert record.rec_type == "warcinfo"
                assert b"penstock" in record.content_stream().read()
    assert found == [(page.url, "200", page.body) for page in (PAGE, a_page(1), a_page(2, 5000))]


def test_every_damaged_byte_of_a_record_is_noticed(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    place = store.append([a_page(1), a_page(2), a_page(3)])[1]
    [segment] = files(tmp_path)
    whole = segment.read_bytes()
    noticed = 0
    for at in range(place.offset, place.offset + place.length):
        segment.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            assert store.read(place) == a_page(2)
        except StoreCorrupt:
            noticed += 1
    # Of a gzip header, time, flags and system may change without changing what it holds.
    assert noticed >= place.length - 6
    store.close()


def test_half_a_record_at_the_end_harms_nothing(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    whole, torn = store.append([a_page(1), a_page(2)])
    store.sync()
    [segment] = files(tmp_path)
    written = segment.read_bytes()
    for end in range(torn.offset, torn.offset + torn.length, 7):
        segment.write_bytes(written[:end])
        successor = DirectorySnapshots(tmp_path, "one")
        [new] = successor.append([a_page(3)])
        assert successor.read(whole) == a_page(1)
        assert successor.read(new) == a_page(3)
        with pytest.raises(StoreCorrupt):
            successor.read(torn)
        successor.close()
    store.close()


def test_a_full_segment_is_followed_by_the_next(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path, "one", max_segment_bytes=1000)
    places = [place for n in range(20) for place in store.append([a_page(n)])]
    store.sync()
    assert len({place.segment for place in places}) > 3
    assert [store.read(place) for place in places] == [a_page(n) for n in range(20)]
    assert len(files(tmp_path)) == len({place.segment for place in places})
    store.close()


def test_a_removed_segment_is_gone_and_the_open_one_cannot_be_removed(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path, "one", max_segment_bytes=1)
    [old], [new] = store.append([a_page(1)]), store.append([a_page(2)])
    store.remove([old.segment])
    store.remove([old.segment])
    with pytest.raises(StoreError):
        store.remove([new.segment])
    with pytest.raises(StoreCorrupt):
        store.read(old)
    assert store.read(new) == a_page(2)
    store.close()


NAMES = ["", ".", "..", "../x", "/etc/passwd", "a\0b", "%2e%2e", "x" * 5000, "\ud800", "ｆ" * 16]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_from_outside_becomes_a_path(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    if "\ud800" not in name:
        store = DirectorySnapshots(root, name)
        store.append([PAGE])
        store.close()
        [segment] = files(root)
        assert segment.name.endswith("-000001.warc.gz")
    store = DirectorySnapshots(root, "other")
    for segment_name in (name, f"{name}-000001", f"0123456789abcdef-000001/{name}"):
        with pytest.raises(StoreError):
            store.read(SegmentPlace("0" * 64, segment_name, 0, 10))
        with pytest.raises(StoreError):
            store.remove([segment_name])
    store.close()
    assert files(tmp_path) == [root]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(alphabet="./\\%2e\0abc0123456789-~:", max_size=40))
def test_fuzzed_segment_names_open_nothing(tmp_path: Path, name: str) -> None:
    store = DirectorySnapshots(tmp_path / "root", "one")
    with pytest.raises(StoreCorrupt):
        store.read(SegmentPlace("0" * 64, name, 0, 10))
    store.close()


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = DirectorySnapshots(tmp_path / "elsewhere", "one")
    [place] = elsewhere.append([PAGE])
    elsewhere.close()
    [outside] = files(tmp_path / "elsewhere")
    whole = outside.read_bytes()
    store = DirectorySnapshots(tmp_path / "root", "one")
    store.append([PAGE])
    planted = place.segment[:-1] + "2"
    (tmp_path / "root" / f"{planted}.warc.gz").symlink_to(outside)
    with pytest.raises(StoreCorrupt):
        store.read(replace(place, segment=planted))
    fresh = DirectorySnapshots(tmp_path / "root", "one")
    fresh.append([PAGE])
    assert outside.read_bytes() == whole
    fresh.close()
    store.close()


def test_a_full_disk_loses_nothing_and_work_goes_on_when_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    [before] = store.append([a_page(1)])
    real_write, calls = os.write, 0

    def short_then_full(file: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            return real_write(file, bytes(data)[:50])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short_then_full)
        with pytest.raises(StoreFull):
            store.append([a_page(2)])
    [after] = store.append([a_page(3)])
    store.sync()
    assert after.offset == before.offset + before.length
    assert (store.read(before), store.read(after)) == (a_page(1), a_page(3))
    store.close()


def test_a_failed_sync_is_told_and_leaves_the_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    [lost] = store.append([a_page(1)])

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(StoreError, match="sync"):
            store.sync()
    [new] = store.append([a_page(2)])
    assert new.segment != lost.segment
    store.sync()
    store.close()


def test_a_new_folder_and_a_new_segment_survive_a_power_cut_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def watch(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))
        real(file)

    monkeypatch.setattr(os, "fsync", watch)
    root = tmp_path / "shared" / "snapshots"
    store = DirectorySnapshots(root, "one")
    assert sorted(synced) == [str(tmp_path), str(root.parent)]
    store.append([PAGE])
    assert synced[2:] == [str(root)]
    store.close()
    DirectorySnapshots(root, "two").close()
    assert len(synced) == 3


def test_closing_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    store.append([PAGE])
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    store.close()
    assert len(synced) == 1


def test_a_file_system_that_syncs_names_by_itself_is_not_asked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        store = DirectorySnapshots(tmp_path, "one")
        assert store.read(*store.append([PAGE])) == PAGE
    store.close()


def test_a_file_server_that_has_forgotten_the_folder_is_asked_for_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    [old] = store.append([a_page(1)])
    store.sync()
    stale = {store._root, store._file}

    def forgetful(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def act(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dir_fd", args[0]) in stale:
                raise OSError(errno.ESTALE, "Stale file handle")
            return real(*args, **kwargs)

        return act

    for name in ("open", "write", "listdir", "ftruncate", "stat", "unlink"):
        monkeypatch.setattr(os, name, forgetful(name))
    for act in (
        lambda: store.append([a_page(2)]),
        lambda: store.read(old),
        lambda: dict(store.segments()),
    ):
        stale |= {store._root}
        with pytest.raises(SnapshotsAway, match="file server"):
            act()
    [new] = store.append([a_page(2)])
    store.sync()
    assert (store.read(old), store.read(new)) == (a_page(1), a_page(2))
    monkeypatch.undo()
    store.close()


def test_a_segment_that_another_host_removes_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = DirectorySnapshots(tmp_path, "one"), DirectorySnapshots(tmp_path, "two")
    [stays], [goes] = store.append([a_page(1)]), other.append([a_page(2)])
    other.close()
    real = os.listdir

    def listed_a_moment_ago(folder: int) -> list[str]:
        found = real(folder)
        store.remove([goes.segment])
        return found

    monkeypatch.setattr(os, "listdir", listed_a_moment_ago)
    assert [name for name, _ in store.segments()] == [stays.segment]
    store.close()


def test_nothing_is_written_for_nothing(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path, "one")
    assert store.append([]) == []
    store.sync()
    store.close()
    assert files(tmp_path) == []


def test_a_directory_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="snapshots"):
        DirectorySnapshots(tmp_path / "file" / "root", "one")


def test_tampered_record_is_refused_before_it_is_held_as_a_whole() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = b"WARC/1.1\r\nWARC-Type: response\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
    pieces = [packer.compress(head), *(packer.compress(bytes(1_000_000)) for _ in range(150))]
    record = b"".join([*pieces, packer.flush()])
    tracemalloc.start()
    with pytest.raises(BadRecord):
        unpack_response(record, "0" * 64)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < HELD_UNCHECKED + 5_000_000


def test_body_too_large_to_be_held_unchecked_is_read_whole() -> None:
    body = bytes(range(256)) * (HELD_UNCHECKED // 256 + 1)
    page = Capture("https://shop.example/a", 200, {}, body, 1.0)
    digest = content_hash(body)
    assert unpack_response(pack_response(page, digest, "x"), digest) == page
