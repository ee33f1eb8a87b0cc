"""The connector `dump` on servers and in buckets: ranges, downloads, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from penstock.app import new_source
from penstock.connectors.dump import downloads, parts, remote
from penstock.connectors.dump.parts import Position
from penstock.connectors.dump.rows import rows_of
from penstock.http.network import AiohttpNetwork, Network, RawResponse, Request
from penstock.testing import VirtualClock, answer
from penstock.testing.connectors import ConnectorSuite, Trial
from tests.connectors.test_dump import (
    Filed,
    RowsPlace,
    made,
    odd_csv,
    parquet_file,
    sqlite_file,
)
from tests.snapshots.s3 import DENIED, KEY_ID, SECRET, Wire, ask


class ServedPlace(RowsPlace):
    """The same file on a server that answers ranges."""

    URL = "https://files.example/rows.jsonl"
    own = frozenset({URL})
    is_locked = False

    def keys(self) -> dict[str, Any]:
        return {**super().keys(), "path": self.URL}

    def lock(self) -> bool:
        self.is_locked = True
        return True

    @property
    def body(self) -> bytes:
        return self.file.read_bytes()

    def page(self, request: Request) -> RawResponse:
        if self.is_locked:
            return answer("", status=401)
        body = self.body
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        if request.headers.get("If-Match", etag) != etag:
            return answer("", status=412)
        first, _, last = request.headers["Range"].removeprefix("bytes=").partition("-")
        if int(first) >= len(body):
            return answer("", status=416)
        found = body[int(first) : int(last) + 1]
        where = f"bytes {first}-{int(first) + len(found) - 1}/{len(body)}"
        return RawResponse(206, {"etag": etag, "content-range": where}, found)


class TestDumpOnAServer(ConnectorSuite):
    place = ServedPlace

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(remote, "MOST_ROWS", 40)


class PackedPlace(ServedPlace):
    """The same, packed: it is downloaded in pieces."""

    URL = "https://files.example/rows.jsonl.gz"
    own = frozenset({URL})

    @property
    def body(self) -> bytes:
        return gzip.compress(super().body, mtime=0)


class TestPackedDumpOnAServer(ConnectorSuite):
    place = PackedPlace

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small_pieces(monkeypatch)


def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "LARGEST_BLOCK", 40)
    monkeypatch.setattr(downloads, "PIECE", 70)
    monkeypatch.setattr(parts, "MOST_ROWS", 40)


class BucketNetwork(AiohttpNetwork):
    """To the server of buckets and nowhere else. Virtual time does not pass while an answer is waited for."""

    def __init__(self, script: Network) -> None:
        super().__init__()
        self._script = script

    async def send(self, request: Request) -> RawResponse:
        return await self._script.send(request)


class BucketPlace(RowsPlace):
    """The same file in a bucket of a real S3 server."""

    wire: Wire
    bucket: ClassVar[str]
    name = "rows.jsonl"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.own = frozenset({f"s3://{self.bucket}/dumps/{self.name}"})  # type: ignore[misc]

    def keys(self) -> dict[str, Any]:
        return {**super().keys(), "path": f"s3://{self.bucket}/dumps/{self.name}"}

    def _write(self) -> None:
        super()._write()
        self._put()

    def _append(self, name: str, text: str) -> None:
        super()._append(name, text)
        self._put()

    def _put(self) -> None:
        where = f"/{self.bucket}/dumps/{self.name}"
        assert ask(self.wire.upstream, "PUT", where, self.body).status == 200

    @property
    def body(self) -> bytes:
        return self.file.read_bytes()

    def lock(self) -> bool:
        self.wire.fail(403, "AccessDenied", body=DENIED)
        return True

    def page(self, request: Request) -> RawResponse:
        where = urlsplit(request.url)
        assert where.port == self.wire.port
        found = ask(
            where.port, request.method, f"{where.path}?{where.query}", b"", dict(request.headers)
        )
        return RawResponse(found.status, found.headers, found.body)

    def network(self, clock: VirtualClock) -> Network:
        return BucketNetwork(super().network(clock))


class PackedBucketPlace(BucketPlace):
    name = "rows.jsonl.gz"

    @property
    def body(self) -> bytes:
        return gzip.compress(super().body, mtime=0)


class TestDumpInABucket(ConnectorSuite):
    place = BucketPlace
    writes = 4

    @pytest.fixture(autouse=True)
    def _served(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        bucket = f"bucket-{uuid.uuid4().hex}"
        assert ask(wire.upstream, "PUT", f"/{bucket}").status == 200
        monkeypatch.setattr(BucketPlace, "wire", wire, raising=False)
        monkeypatch.setattr(BucketPlace, "bucket", bucket, raising=False)
        monkeypatch.setattr(remote, "MOST_ROWS", 40)

    def start(self, *about: Any, **more: Any) -> Trial:
        self.place.wire.mend()
        return super().start(*about, **more)


class TestPackedDumpInABucket(TestDumpInABucket):
    place = PackedBucketPlace

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small_pieces(monkeypatch)


@pytest.mark.parametrize("block", [40, 60, 200, 100_000])
def test_a_table_on_a_server_has_the_same_rows_whatever_its_ranges_are(block: int) -> None:
    body, expected = odd_csv(60)
    body += b"\n\n"
    at, found, names, size = Position(), [], list[str](), block
    delimiter = encoding = ""
    while True:
        piece = body[at.offset : at.offset + size]
        is_last = at.offset + size >= len(body)
        part = remote.Block(piece, is_last, "t.csv", "csv", delimiter, encoding).part(at, True)
        if part is None:
            size = remote.next_size(0, size)
            continue
        rows, names = rows_of(part, at, names, True)
        found += rows
        if part.next is None:
            break
        at, size, delimiter, encoding = part.next, block, part.delimiter, part.encoding
    assert [row.data for row in found] == expected
    assert [row.number for row in found] == list(range(1, 61))


def test_what_a_server_can_not_give_in_ranges_is_refused_in_one_line(tmp_path: Path) -> None:
    whole = answer("id\n1\n", headers={"Content-Type": "text/csv"})
    for path, reply, problem in (
        ("https://files.example/a.csv", whole, "does not answer ranges of the file: download it"),
        ("https://files.example/a.csv.gz", whole, "does not answer ranges of the file"),
        ("https://files.example/a.csv", RawResponse(206, {}, b"i"), "does not say how long"),
    ):
        folder = made(tmp_path, str(len(list(tmp_path.iterdir()))))
        trial = Filed(folder, "unused.csv", b"", path=path)
        trial.place.answers = [reply]
        run = trial.run()
        [job] = trial.jobs(run)
        assert (run.state, job.kind, problem in str(job.error)) == ("failed", "permanent", True), (
            job
        )


def test_the_query_of_an_address_is_in_no_key(tmp_path: Path) -> None:
    class Signed(ServedPlace):
        def keys(self) -> dict[str, Any]:
            return {"path": f"{self.URL}?token=hidden"}

    place = Signed(tmp_path)
    place.put("one", "text")
    trial = Trial(tmp_path, place)
    trial.run()
    assert set(trial.documents()) == {place.URL, f"{place.URL}#1"}


class ServedFile(ServedPlace):
    """Any file on the server."""

    URL = ""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        self.URL = f"https://files.example/{name}"
        self.file = folder / f"served-{name}"

    def keys(self) -> dict[str, Any]:
        return {"path": self.URL, **({"encoding": "utf-16"} if "utf-16" in self.URL else {})}


def zip_file(file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("deep/a.csv", "id\n" + "".join(f"{n}\n" for n in range(30)))
        archive.writestr("b.jsonl", '{"id": 1}\n' * 20)


def wide_file(file: Path) -> None:
    file.write_bytes(("id\n" + "".join(f"é {n}\n" for n in range(90))).encode("utf-16"))


@pytest.mark.parametrize(
    ("name", "write", "count"),
    [
        ("t.parquet", parquet_file, 50),
        ("t.sqlite", sqlite_file, 70),
        ("t.zip", zip_file, 50),
        ("t.utf-16.csv", wide_file, 90),
    ],
)
def test_formats_that_are_read_here_and_there_are_downloaded_while_they_are_read(
    name: str,
    write: Callable[[Path], None],
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(downloads, "LARGEST_BLOCK", 3_000)
    monkeypatch.setattr(downloads, "PIECE", 5_000)
    monkeypatch.setattr(parts, "MOST_ROWS", 7)
    for point in (None, 3, 6, 13):
        place = ServedFile(made(tmp_path, f"dies {point}"), name)
        write(place.file)
        trial = Trial(place.folder, place)
        assert trial.run(dies_at=point).state == "completed"
        assert sum(each["kind"] == "row" for each in trial.documents().values()) == count
        assert list((place.folder / ".penstock" / "downloads").iterdir()) == []
        place.requests.clear()
        assert trial.items_read(trial.run()) == []
        assert len(place.requests) == 1


def test_a_download_goes_on_where_it_was_when_the_worker_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "LARGEST_BLOCK", 1_000)
    monkeypatch.setattr(downloads, "PIECE", 2_000)
    place = ServedFile(tmp_path, "t.csv.gz")
    place.file.write_bytes(gzip.compress(b"id\n" + os.urandom(8_000).hex("\n").encode()))
    ranges: list[str] = []
    page = place.page

    def watched(request: Request) -> RawResponse:
        ranges.append(request.headers["Range"])
        return page(request)

    place.page = watched  # type: ignore[method-assign]
    modes = set[int]()
    folder = tmp_path / ".penstock" / "downloads"
    place.on_read = lambda: modes.update(each.stat().st_mode & 0o777 for each in folder.glob("*"))
    assert Trial(tmp_path, place).run(dies_at=5).state == "completed"
    assert (folder.stat().st_mode & 0o777, modes) == (0o700, {0o600})
    starts = [int(each[6:].partition("-")[0]) for each in ranges[1:]]
    # What the dead worker had is on the disk, whether or not it was told to anybody.
    assert starts == list(range(0, place.file.stat().st_size, 1_000))


def test_a_file_on_a_server_that_changes_while_it_is_downloaded_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_pieces(monkeypatch)
    place = ServedFile(tmp_path, "t.csv.gz")
    place.file.write_bytes(gzip.compress(b"id\n" + os.urandom(500).hex("\n").encode()))
    reads = [0]

    def change() -> None:
        reads[0] += 1
        if reads[0] == 2:
            place.file.write_bytes(gzip.compress(b"id\nnew\n"))

    place.on_read = change
    trial = Trial(tmp_path, place)
    assert trial.run().state == "completed"
    assert [row["data"] for row in trial.documents().values() if row["kind"] == "row"] == [
        {"id": "new"}
    ]
    assert list((tmp_path / ".penstock" / "downloads").iterdir()) == []


def bucket_of(wire: Wire, objects: dict[str, bytes]) -> str:
    bucket = f"bucket-{uuid.uuid4().hex}"
    assert ask(wire.upstream, "PUT", f"/{bucket}").status == 200
    for name, body in objects.items():
        assert ask(wire.upstream, "PUT", f"/{bucket}/{name}", body).status == 200
    return bucket


class InBucket(BucketPlace):
    def __init__(self, folder: Path, wire: Wire, path: str) -> None:
        super().__init__(folder)
        self.wire, self._path = wire, path

    bucket = "unused"

    def keys(self) -> dict[str, Any]:
        return {"path": self._path, "key": "id"}


def test_a_pattern_means_the_objects_that_match_and_each_has_its_own_rows(
    tmp_path: Path, wire: Wire
) -> None:
    objects = {
        "dumps/a.csv": b"id\n1\n2\n",
        "dumps/b.csv.gz": gzip.compress(b"id\n3\n4\n"),
        "dumps/deeper/c.csv": b"id\n5\n",
        "dumps-old/d.csv": b"id\n6\n",
        "dumps/readme.txt": b"no table",
    }
    bucket = bucket_of(wire, objects)
    trial = Trial(tmp_path, InBucket(tmp_path, wire, f"s3://{bucket}/dumps/*.csv*"))
    assert trial.run().state == "completed"
    rows = {key: each["meta"] for key, each in trial.documents().items() if each["kind"] == "row"}
    a, b = f"s3://{bucket}/dumps/a.csv", f"s3://{bucket}/dumps/b.csv.gz"
    assert rows == {"1": {"file": a}, "2": {"file": a}, "3": {"file": b}, "4": {"file": b}}
    # A row that is gone from one object is deleted; those of the other are none of its business.
    ask(wire.upstream, "PUT", f"/{bucket}/dumps/a.csv", b"id\n2\n")
    assert trial.run().state == "completed"
    assert {key for key in trial.documents() if "/" not in key} == {"2", "3", "4"}


def test_what_a_bucket_refuses_is_one_line_without_a_signature(
    tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = bucket_of(wire, {"a.csv": b"id\n1\n"})
    for path, kind, problem in (
        (f"s3://{bucket}/none.csv", "permanent", f"status 404: s3://{bucket}/none.csv"),
        (f"s3://{bucket}", "permanent", "an object in a bucket is s3://BUCKET/NAME"),
        ("s3://no-such-bucket/*.csv", "permanent", "there is no such bucket"),
        (f"s3://{bucket}/a.exe", "data", "has no format that is known"),
    ):
        folder = made(tmp_path, str(len(list(tmp_path.iterdir()))))
        trial = Trial(folder, InBucket(folder, wire, path))
        run = trial.run()
        [job] = trial.jobs(run)
        assert (run.state, job.kind, problem in str(job.error)) == ("failed", kind, True), job
        for file in folder.rglob("*"):
            if file.is_file():
                for hidden in (b"X-Amz-Signature", KEY_ID.encode(), SECRET.encode()):
                    assert hidden not in file.read_bytes(), file
    wire.fail(403, "AccessDenied", body=DENIED)
    folder = made(tmp_path, "denied")
    trial = Trial(folder, InBucket(folder, wire, f"s3://{bucket}/*.csv"))
    [job] = trial.jobs(trial.run())
    assert (job.kind, job.tries) == ("auth", 1)
    assert str(job.error).endswith(f"s3://{bucket}: access denied (403 AccessDenied)")


class InCloud(ServedFile):
    """An object in a bucket of Google or Azure, by the address that the client signs."""

    def __init__(self, folder: Path, path: str, host: str) -> None:
        super().__init__(folder, path.rpartition("/")[2])
        self._path, self._host = path, host

    def keys(self) -> dict[str, Any]:
        return {"path": self._path, "key": "id"}

    def page(self, request: Request) -> RawResponse:
        where = urlsplit(request.url)
        assert (where.scheme, where.netloc) == ("https", self._host)
        assert where.path == "/" + self._path.partition("://")[2]
        assert "sig" in where.query.lower()
        return super().page(request)


def service_account(file: Path) -> Path:
    """The credentials of nobody, as Google has them."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    about = {
        "type": "service_account",
        "client_email": "nobody@example.iam.gserviceaccount.com",
        "private_key_id": "1",
        "private_key": pem.decode(),
    }
    file.write_text(json.dumps(about))
    return file


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("gs://bucket/dumps/t.csv", "storage.googleapis.com"),
        ("gs://bucket/dumps/t.csv.gz", "storage.googleapis.com"),
        ("az://container/dumps/t.csv.gz", "nobody.blob.core.windows.net"),
    ],
)
def test_objects_of_google_and_azure_are_read_by_signed_addresses(
    path: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = service_account(tmp_path / "nobody.json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "nobody")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "bm9ib2R5")
    place = InCloud(tmp_path, path, host)
    body = b"id\n1\n2\n"
    place.file.write_bytes(gzip.compress(body) if path.endswith("gz") else body)
    trial = Trial(tmp_path, place)
    assert trial.run().state == "completed"
    assert {key for key in trial.documents() if "/" not in key} == {"1", "2"}
    for file in tmp_path.rglob("penstock.db*"):
        assert b"X-Goog-Signature" not in file.read_bytes()
        assert b"&sig=" not in file.read_bytes()


def test_a_bucket_without_its_extra_says_what_to_install(
    tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("obstore", "penstock.http.buckets"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("penstock.http.buckets", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    trial = Trial(tmp_path, InBucket(tmp_path, wire, "s3://bucket/a.csv"))
    [job] = trial.jobs(trial.run())
    assert job.kind == "permanent"
    assert "pip install 'penstock[blob]'" in str(job.error)


def test_tables_on_servers_and_in_buckets_are_recognised_by_their_names(tmp_path: Path) -> None:
    for address, name in (
        ("https://files.example/big.csv.gz?x=1", "big"),
        ("https://files.example/big.parquet", "big"),
        ("s3://bucket/dumps/orders.csv.zst", "orders"),
        ("gs://bucket/dumps/*.jsonl", "dump"),
    ):
        found = new_source.propose(tmp_path, new_source.Wish(address))
        assert (address, found.connector, found.name) == (address, "dump", name)
