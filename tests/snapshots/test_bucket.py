"""A bucket: one object for each sync, put where nothing was, and every refusal in plain words."""

from __future__ import annotations

import secrets
import sys
from datetime import timedelta

import pytest

from penstock.errors import ConfigError, StoreCorrupt, StoreError
from penstock.snapshots import (
    SegmentPlace,
    SnapshotsAway,
    SnapshotStore,
    open_snapshots,
)
from penstock.snapshots import (
    bucket as buckets,
)
from penstock.snapshots.bucket import BucketSnapshots
from penstock.snapshots.segment import LAST_NUMBER
from penstock.snapshots.store import SnapshotsRefused
from tests.snapshots.homes import SUFFIX, BucketHome, a_page
from tests.snapshots.s3 import DENIED, KEY_ID, SECRET, Wire


@pytest.fixture(autouse=True)
def _soon_out_of_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "RETRY_S", 0.3)


def kept(store: SnapshotStore, number: int) -> SegmentPlace:
    [place] = store.append([a_page(number)])
    store.sync()
    return place


def refused(store: SnapshotStore) -> SnapshotsAway:
    with pytest.raises(SnapshotsAway) as caught:
        kept(store, 1)
    for hidden in (KEY_ID, SECRET, "StringToSign", "Debug", "\n"):
        assert hidden not in f"{caught.value.message}{caught.value.hint}{caught.value!r}"
    assert caught.value.__suppress_context__
    return caught.value


# Writing.


def test_a_sync_is_one_object_and_one_request_however_many_pages_it_has(
    bucket: BucketHome, wire: Wire
) -> None:
    store = bucket.open()
    store.append([a_page(1), a_page(2)])
    store.append([a_page(number) for number in range(3, 100)])
    assert wire.requests == []
    store.sync()
    store.sync()
    assert [request.split(" ")[0] for request in wire.requests] == ["PUT"]
    assert len(bucket.files()) == 1


def test_nothing_is_durable_before_sync_and_all_of_it_after(bucket: BucketHome) -> None:
    store = bucket.open()
    [place] = store.append([a_page(1)])
    assert bucket.files() == {}
    store.sync()
    assert f"{place.segment}{SUFFIX}" in bucket.files()


def test_every_start_has_a_mark_of_its_own(bucket: BucketHome) -> None:
    marks = {kept(bucket.open("same"), 1).segment.partition("-")[0] for _ in range(5)}
    assert len(marks) == 5


def test_a_name_that_is_taken_is_not_overwritten(
    bucket: BucketHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    one, two = bucket.open(), bucket.open()
    first = kept(one, 1)
    with pytest.raises(StoreError, match="is taken"):
        kept(two, 2)
    assert one.read(first) == a_page(1)
    assert two.read(kept(two, 2)) == a_page(2)


def test_a_put_whose_answer_was_lost_is_known_to_be_done(bucket: BucketHome, wire: Wire) -> None:
    store = bucket.open()
    wire.fail(500, "InternalError", is_passed_on=True, method="PUT", times=1)
    place = kept(store, 1)
    assert len(bucket.files()) == 1
    assert store.read(place) == a_page(1)


def test_a_put_that_failed_is_made_again_under_another_name(bucket: BucketHome, wire: Wire) -> None:
    store = bucket.open()
    [lost] = store.append([a_page(1)])
    wire.fail(403, "AccessDenied")
    with pytest.raises(SnapshotsAway):
        store.sync()
    wire.mend()
    place = kept(store, 1)
    assert place.segment != lost.segment
    assert store.read(place) == a_page(1)
    with pytest.raises(StoreCorrupt):
        store.read(lost)


def test_the_last_number_is_followed_by_a_new_mark(bucket: BucketHome) -> None:
    store = BucketSnapshots(bucket.setting)
    first = kept(store, 1)
    store._number = LAST_NUMBER - 1
    last, next_one = kept(store, 2), kept(store, 3)
    assert last.segment == f"{first.segment[:16]}-{LAST_NUMBER}"
    assert next_one.segment[:16] != first.segment[:16]
    assert store.read(next_one) == a_page(3)


def test_a_large_batch_becomes_several_objects(bucket: BucketHome) -> None:
    store = bucket.open(max_bytes=2000)
    pages = [a_page(number) for number in range(100)]
    places = store.append(pages)
    store.sync()
    assert [store.read(place) for place in places] == pages
    sizes = [len(data) for data in bucket.files().values()]
    assert len(sizes) > 5
    assert max(sizes) < 2000 + max(place.length for place in places)


def test_a_page_larger_than_an_object_is_an_object(bucket: BucketHome, wire: Wire) -> None:
    store = bucket.open()
    page = a_page(1, 1)
    body = secrets.token_bytes(6_000_000)
    large = type(page)(page.url, 200, {}, body, page.fetched_at)
    [place] = store.append([large])
    store.sync()
    assert len(wire.requests) == 1
    assert store.read(place).body == body


# Trouble.


def test_no_such_bucket_is_said_with_what_to_do(wire: Wire) -> None:
    store = open_snapshots("s3://no-such-bucket/snapshots", "writer")
    error = refused(store)
    assert error.message == (
        "can't write snapshots to s3://no-such-bucket/snapshots: "
        "there is no such bucket (404 NoSuchBucket)"
    )
    assert "penstock.yaml" in error.hint
    with pytest.raises(SnapshotsRefused, match="no such bucket"):
        store.check()
    with pytest.raises(SnapshotsRefused, match="no such bucket"):
        store.read(SegmentPlace("0" * 64, "0123456789abcdef-000001", 0, 10))


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "AccessDenied", "access denied (403 AccessDenied)"),
        (403, "SignatureDoesNotMatch", "access denied (403 SignatureDoesNotMatch)"),
        (403, "RequestTimeTooSkewed", "access denied (403 RequestTimeTooSkewed)"),
        (401, "Unauthorized", "access denied (401 Unauthorized)"),
        (404, "NoSuchBucket", "there is no such bucket (404 NoSuchBucket)"),
        (501, "NotImplemented", "it can't put an object only where there is none"),
    ],
)
def test_what_somebody_must_mend_is_refused(
    bucket: BucketHome, wire: Wire, status: int, code: str, words: str
) -> None:
    store = bucket.open()
    wire.fail(status, code, body=DENIED)
    error = refused(store)
    assert isinstance(error, SnapshotsRefused)
    assert words in error.message
    assert error.hint
    with pytest.raises(SnapshotsRefused):
        store.check()


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (503, "SlowDown", "the object store asks us to slow down (503"),
        (429, "TooManyRequests", "the object store asks us to slow down (429"),
        (500, "InternalError", "the object store failed (500"),
    ],
)
def test_what_passes_is_waited_for(
    bucket: BucketHome, wire: Wire, status: int, code: str, words: str
) -> None:
    store = bucket.open()
    wire.fail(status, code, body=DENIED)
    error = refused(store)
    assert not isinstance(error, SnapshotsRefused)
    assert words in error.message
    assert len(wire.requests) > 1, "it was tried more than once"
    store.check()


def test_a_hiccup_is_not_noticed(bucket: BucketHome, wire: Wire) -> None:
    store = bucket.open()
    wire.fail(503, "SlowDown", times=1)
    assert store.read(kept(store, 1)) == a_page(1)


def test_a_server_that_is_down_is_said_and_found_again(bucket: BucketHome, wire: Wire) -> None:
    store = bucket.open()
    place = kept(store, 1)
    wire.cut()
    error = refused(store)
    assert error.message.endswith("the object store can't be reached")
    for act in (lambda: store.read(place), lambda: dict(store.segments())):
        with pytest.raises(SnapshotsAway, match="can't be reached"):
            act()
    with pytest.raises(SnapshotsAway, match="can't be reached"):
        store.remove([place.segment])
    store.check()
    wire.mend()
    assert store.read(place) == a_page(1)
    assert store.read(kept(store, 2)) == a_page(2)


def test_the_worker_learns_of_trouble_soon(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert buckets.RETRY_S <= 10
    for url in ("s3://bucket", "gs://bucket", "az://container"):
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
        store = BucketSnapshots(url)
        retry, client = store._bucket.retry_config, store._bucket.client_options
        assert retry is not None
        assert client is not None
        assert retry["retry_timeout"] == timedelta(seconds=buckets.RETRY_S)
        assert client["timeout"] == f"{buckets.REQUEST_S:g}s"


def test_a_server_that_hangs_is_given_up(
    bucket: BucketHome, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "REQUEST_S", 0.3)
    store = bucket.open()
    wire.hang()
    assert refused(store).message.endswith("the object store does not answer")


def test_without_credentials_it_is_said_which_are_wanted(
    bucket: BucketHome, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = refused(bucket.open())
    assert isinstance(error, SnapshotsRefused)
    assert "no credentials were found" in error.message
    assert "AWS_ACCESS_KEY_ID" in error.hint


def test_a_bucket_elsewhere_names_the_region_to_set(bucket: BucketHome, wire: Wire) -> None:
    wire.fail(301, "PermanentRedirect")
    error = refused(bucket.open())
    assert "another region" in error.message
    assert "AWS_REGION" in error.hint


def test_an_environment_that_can_not_be_used_is_told(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SnapshotsRefused, match="not configured"):
        open_snapshots("az://container/prefix", "writer")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", SECRET)
    with pytest.raises(SnapshotsRefused, match="not configured") as caught:
        open_snapshots("s3://bucket/prefix", "writer")
    assert SECRET not in f"{caught.value!r}"


def test_other_object_stores_are_opened_by_their_scheme(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    for url in ("gs://bucket/prefix", "az://container/prefix", "gs://bucket", "s3://bucket"):
        assert isinstance(open_snapshots(url, "writer"), BucketSnapshots)


def test_without_obstore_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith(("obstore", "penstock.snapshots.bucket", "penstock.snapshots.refusals")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigError, match="obstore") as caught:
        open_snapshots("s3://bucket/prefix", "writer")
    assert caught.value.hint == "pip install 'penstock[blob]'"
