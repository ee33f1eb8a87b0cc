"""The connector `dump`: the conformance suite, and what large files need besides."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import json
import os
import random
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from backports import zstd

from penstock.app import new_source
from penstock.connectors.dump import (
    columns,
    database,
    lines,
    parts,
    reader,
    streams,
    walk,
)
from penstock.connectors.dump import connector as dump
from penstock.connectors.dump.parts import Position
from penstock.connectors.dump.rows import rows_of
from penstock.connectors.dump.walk import Dialect, Reading, Walk
from penstock.errors import ConfigError
from penstock.jobs.failures import BadData
from penstock.testing.connectors import ALL_WRITES, ConnectorSuite, Place, Trial

watched: list[RowsPlace] = []


class RowsPlace(Place):
    """Each item is a row of one file."""

    connector = "dump"
    own = frozenset({"rows.jsonl"})
    is_swept = True
    _ticks = itertools.count(1_700_000_000_000_000_000, 1_000_000_000)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.file = folder / "rows.jsonl"
        watched[:] = [self]

    def keys(self) -> dict[str, Any]:
        return {"path": "./rows.jsonl", "key": "id", "text": "body"}

    def put(self, name: str, text: str) -> bool:
        is_new = name not in self.texts
        self.texts[name] = text
        if is_new and self.file.exists():
            self._append(name, text)
        else:
            self._write()
        return True

    def _append(self, name: str, text: str) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps({"id": name, "body": text}) + "\n")
        os.utime(self.file, ns=(0, next(self._ticks)))

    def remove(self, name: str) -> None:
        del self.texts[name]
        self._write()

    def _write(self) -> None:
        beside = self.file.with_suffix(".new")
        beside.write_text(
            "".join(
                json.dumps({"id": name, "body": text}) + "\n" for name, text in self.texts.items()
            )
        )
        os.utime(beside, ns=(0, next(self._ticks)))
        beside.replace(self.file)

    def key(self, name: str) -> str:
        return name

    def lock(self) -> bool:
        if os.geteuid() == 0:
            return False  # nothing is refused to root
        self.file.chmod(0)
        return True

    def take_away(self) -> None:
        super().take_away()
        self.file.unlink()


class TestDump(ConnectorSuite):
    place = RowsPlace

    @pytest.fixture(autouse=True)
    def _watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watching_parts(monkeypatch)
        monkeypatch.setattr(parts, "MOST_ROWS", 40)


def watching_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place learns when a part of its file is read."""
    part = Walk.part

    def watching(self: Walk) -> parts.Part:
        found = part(self)
        watched[0].on_read()
        return found

    monkeypatch.setattr(Walk, "part", watching)


@pytest.mark.torture
class TestManyRows(ConnectorSuite):
    place = RowsPlace
    many, writes = 25_000, ALL_WRITES

    @pytest.fixture(autouse=True)
    def _watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watching_parts(monkeypatch)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of few rows, so that a small file has many."""
    monkeypatch.setattr(parts, "MOST_ROWS", 7)


class Filed(Trial):
    def __init__(self, folder: Path, name: str, body: bytes, **keys: Any) -> None:
        class Chosen(RowsPlace):
            own = frozenset({name})

            def keys(self) -> dict[str, Any]:
                return {"path": f"./{name}", **keys}

        place = Chosen(folder)
        place.file = folder / name
        place.file.write_bytes(body)
        os.utime(place.file, ns=(0, 1_700_000_000_000_000_000))
        self.file = place.file
        super().__init__(folder, place)

    def rows(self) -> dict[str, Any]:
        return {
            key: each["data"] for key, each in self.documents().items() if each["kind"] == "row"
        }

    def rejects(self) -> list[str]:
        with self.project() as project:
            return [each.reason for each in project.rejects.each()]


def odd_csv(count: int) -> tuple[bytes, list[dict[str, str]]]:
    """Rows with every kind of quoting, of which no line can be told from a row by itself."""
    rng = random.Random(7)
    cells = ['a "quoted" word', "two\nlines", "comma, and more", '"', "", "é", "\n\n", 'x"\n,"y']
    rows = [{"id": str(n), "a": rng.choice(cells), "b": rng.choice(cells)} for n in range(count)]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, ["id", "a", "b"])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode(), rows


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "rows.csv": bytes,
    "rows.csv.gz": gzip.compress,
    "rows.csv.bz2": bz2.compress,
    "rows.csv.zst": zstd.compress,
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.usefixtures("small")
def test_every_row_is_there_once_wherever_a_reader_stops_and_another_goes_on(
    name: str, tmp_path: Path
) -> None:
    body, expected = odd_csv(60)
    file = tmp_path / name
    file.write_bytes(PACKED[name](body))
    at, dialect, names, found = Position(), Dialect(), list[str](), []
    while True:
        # A reader of its own for each part: it has to find the place again.
        reader = Walk(file, name, Reading(), at, dialect)
        part = reader.part()
        reader.close()
        rows, names = rows_of(part, at, names, True)
        found += rows
        if part.next is None:
            break
        at, dialect = part.next, Dialect(part.delimiter, part.encoding)
    assert [row.data for row in found] == expected
    assert [row.number for row in found] == list(range(1, 61))
    starts = [body.count(b"\n", 0, body.index(f"\n{row['id']},".encode()) + 1) for row in expected]
    assert [row.line for row in found] == [start + 1 for start in starts]


@pytest.mark.usefixtures("small")
def test_a_worker_that_dies_at_any_part_loses_and_doubles_no_row(tmp_path: Path) -> None:
    body, expected = odd_csv(40)
    for point in range(1, 17, 2):
        folder = tmp_path / str(point)
        folder.mkdir()
        trial = Filed(folder, "rows.csv.gz", gzip.compress(body), key="id")
        run = trial.run(dies_at=point)
        assert (point, run.state) == (point, "completed")
        assert trial.rows() == {row["id"]: row for row in expected}
        assert {version for _, version in trial.records().values()} == {1}
        assert trial.items_read(trial.run()) == []


def test_a_bad_row_is_rejected_by_its_line_and_harms_no_other(tmp_path: Path) -> None:
    body = (
        b"\xef\xbb\xbfid;name\r\n1;one\r\n2;two;too many\r\n\r\n3;\xff\xfe\r\n"
        b'4;"four\r\nlines"\r\n5\r\n' + b"6;" + b"x" * lines.MOST_LINE + b"\r\n7;seven\r\n;none\r\n"
        b'8;"open\r\n'
    )
    trial = Filed(tmp_path, "rows.csv", body, key="id", encoding="utf-8")
    assert trial.run().state == "completed"
    assert trial.rows() == {
        "1": {"id": "1", "name": "one"},
        "4": {"id": "4", "name": "four\r\nlines"},
        "7": {"id": "7", "name": "seven"},
        "8": {"id": "8", "name": "open\r\n"},
    }
    assert sorted(trial.rejects()) == [
        "rows.csv, line 11: no value in id, which is its key",
        "rows.csv, line 3: 3 cells where the header has 2",
        "rows.csv, line 5: not UTF-8; name the encoding of the file by `encoding`",
        "rows.csv, line 8: 1 cells where the header has 2",
        "rows.csv, line 9: a line of 1,000,004 bytes",
    ]
    report = trial.documents()["rows.csv"]
    assert (report["kind"], report["meta"]["rows"], report["meta"]["rejected"]) == ("table", 4, 5)


def test_a_quote_that_nobody_closes_takes_one_row(tmp_path: Path) -> None:
    rows = "".join(f"{number},text\n" for number in range(3_000))
    trial = Filed(tmp_path, "rows.csv", f'id,name\nbad,"open\n{rows}'.encode(), key="id")
    trial.run()
    assert len(trial.rows()) == 3_000
    [reason] = trial.rejects()
    assert reason.startswith("rows.csv, line 2: no CSV")


@pytest.mark.parametrize(
    ("encoding", "named"), [("utf-16", None), ("cp1252", None), ("koi8-r", "koi8-r")]
)
def test_other_encodings_are_read(encoding: str, named: str | None, tmp_path: Path) -> None:
    word = "привет" if encoding == "koi8-r" else "naïve"
    body = f"id\tname\n1\t{word}\n".encode(encoding)
    trial = Filed(tmp_path, "rows.tsv", body, **({"encoding": named} if named else {}))
    trial.run()
    assert trial.rows() == {"rows.tsv#1": {"id": "1", "name": word}}


def test_the_tables_of_an_archive_are_read_and_names_in_it_lead_nowhere(tmp_path: Path) -> None:
    table = b"id\n1\n2\n"
    members = {
        "../../etc/passwd.csv": table,
        "deep/a.jsonl.gz": gzip.compress(b'{"id": 3}\n'),
        "readme.txt": b"not a table",
        "inner.zip": b"PK",
    }
    packed_zip, packed_tar = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed_zip, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    with tarfile.open(fileobj=packed_tar, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, body in members.items():
            about = tarfile.TarInfo(name if name != "readme.txt" else "long/" * 60 + "b.csv")
            about.size = len(body)
            tar.addfile(about, io.BytesIO(body))
        link = tarfile.TarInfo("link.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    for name, body in (("t.zip", packed_zip.getvalue()), ("t.tar.gz", packed_tar.getvalue())):
        folder = tmp_path / name
        folder.mkdir()
        trial = Filed(folder, name, body)
        assert trial.run().state == "completed"
        assert {key: row["id"] for key, row in trial.rows().items() if "long" not in key} == {
            f"{name}/../../etc/passwd.csv#1": "1",
            f"{name}/../../etc/passwd.csv#2": "2",
            f"{name}/deep/a.jsonl.gz#1": 3,
        }
        assert list(folder.parent.rglob("passwd*")) == []
        only = Filed(made(tmp_path, f"only {name}"), name, body, members=["*.gz"])
        only.run()
        assert set(only.rows()) == {f"{name}/deep/a.jsonl.gz#1"}


def made(above: Path, name: str) -> Path:
    (above / name).mkdir()
    return above / name


def test_bombs_and_damaged_files_end_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MANY", 1_000_000)
    bomb = zstd.compress(b"id\n" + (b"1" * 50_000 + b"\n") * 1_000)
    pax = tarfile.TarInfo("x")
    pax.type, pax.size = tarfile.XHDTYPE, 10**12
    for name, body, problem in (
        ("bomb.csv.zst", bomb, "times as large as packed"),
        ("cut.csv.gz", gzip.compress(os.urandom(5_000))[:-100], "can't be unpacked"),
        ("none.csv.gz", b"id\n1\n", "can't be unpacked"),
        ("none.zip", b"PK\3\4", "this is no zip file"),
        ("large.tar", pax.tobuf(tarfile.GNU_FORMAT), "a header of 1,000,000,000,000 bytes"),
        ("what.xyz", b"", "has no format that is known"),
    ):
        trial = Filed(made(tmp_path, name), name, body)
        run = trial.run()
        [failed] = [job for job in trial.jobs(run) if job.state == "quarantined"]
        assert (name, failed.kind, problem in str(failed.error)) == (name, "data", True), failed


@pytest.mark.usefixtures("small")
def test_a_file_that_changes_while_it_is_read_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Filed(
        tmp_path, "rows.csv", b"id\n" + b"".join(b"%d\n" % n for n in range(30)), key="id"
    )
    part, seen = Walk.part, [0]

    def changing(self: Walk) -> parts.Part:
        seen[0] += 1
        if seen[0] == 3:
            trial.file.write_bytes(b"id\n" + b"".join(b"n%d\n" % n for n in range(20)))
            os.utime(trial.file, ns=(0, 1_700_000_001_000_000_000))
        return part(self)

    monkeypatch.setattr(Walk, "part", changing)
    assert trial.run().state == "completed"
    assert {f"n{n}" for n in range(20)} <= set(trial.rows())
    # It has been seen in two states within one run, so that it is looked at once more.
    trial.run()
    assert trial.items_read(trial.run()) == []


@pytest.mark.usefixtures("small")
def test_a_file_counts_as_read_only_when_its_last_part_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Filed(
        tmp_path, "rows.csv", b"id\n" + b"".join(b"%d\n" % n for n in range(30)), key="id"
    )

    def failing(self: Walk) -> parts.Part:
        raise BadData("unreadable")

    part, seen = Walk.part, [0]

    def fails_once(self: Walk) -> parts.Part:
        seen[0] += 1
        return failing(self) if seen[0] == 3 else part(self)

    monkeypatch.setattr(Walk, "part", fails_once)
    assert trial.run().state == "partial"
    monkeypatch.setattr(Walk, "part", part)
    assert trial.run().state == "completed"
    assert len(trial.rows()) == 30
    assert trial.items_read(trial.run()) == []


def test_types_of_columns_are_reported_as_narrow_as_all_values_allow() -> None:
    report = columns.Report()
    for row in (
        {"i": "1", "n": "1", "z": "007", "d": "2026-01-02", "b": "true", "m": 1, "e": ""},
        {"i": "-20", "n": "2.5e3", "z": "1", "d": "", "b": "False", "m": [1], "e": None},
    ):
        report.add(row)
    assert report.types() == {
        "i": "integer",
        "n": "number",
        "z": "text",
        "d": "date or empty",
        "b": "boolean",
        "m": "mixed",
        "e": "empty",
    }


def test_what_stays_open_is_bounded(tmp_path: Path) -> None:
    for number in range(10):
        file = tmp_path / f"{number}.csv"
        file.write_bytes(b"id\n1\n")
        reader._walks.give(file, "", Walk(file, file.name, Reading(), Position(), Dialect()))
    assert len(reader._walks._walks) == walk.MOST_OPEN


def test_large_and_packed_tables_are_recognised_and_small_ones_stay_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "LARGE", 100)
    for name, size, connector in (
        ("small.csv", 50, "files"),
        ("large.csv", 200, "dump"),
        ("small.csv.gz", 50, "dump"),
        ("some.zip", 50, "dump"),
        ("large.txt", 200, "files"),
    ):
        (tmp_path / name).write_bytes(b"x" * size)
        found = new_source.propose(tmp_path, new_source.Wish(str(tmp_path / name)))
        assert (name, found.connector) == (name, connector)
    found = new_source.propose(tmp_path, new_source.Wish("https://files.example/big.csv?x=1"))
    assert (found.connector, found.name) == ("dump", "big")


def parquet_file(file: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"id": range(50), "when": [datetime(2026, 11, 18, tzinfo=UTC)] * 50})
    parquet.write_table(table, file, row_group_size=20)


def sqlite_file(file: Path) -> None:
    with closing(apsw.Connection(str(file))) as database:
        database.execute('CREATE TABLE "odd ""name" (id INTEGER PRIMARY KEY, body BLOB)')
        database.executemany(
            'INSERT INTO "odd ""name" VALUES (?, ?)', [(n, b"x") for n in range(-20, 30)]
        )
        database.execute("CREATE TABLE plain (id TEXT PRIMARY KEY, rowid) WITHOUT ROWID")
        database.executemany("INSERT INTO plain VALUES (?, 1)", [(f"k{n}",) for n in range(20)])
        database.execute("CREATE TABLE bare (id); CREATE VIEW v AS SELECT 1 AS id")


def xml_file(file: Path) -> None:
    rows = "".join(
        f'<item id="{n}"><name>n {n}</name><tag>a</tag><tag>b</tag></item>' for n in range(50)
    )
    file.write_text(f"<?xml version='1.0'?><all xmlns='urn:x'><!-- c --><in>{rows}</in></all>")


@pytest.mark.parametrize(
    ("name", "write", "keys", "count", "sample"),
    [
        ("t.parquet", parquet_file, {}, 50, ("t.parquet#21", {"id": 20})),
        ("t.sqlite", sqlite_file, {}, 70, ('t.sqlite/odd "name#1', {"id": -20})),
        ("t.sqlite", sqlite_file, {"members": ["plain"]}, 20, ("t.sqlite/plain#20", {"id": "k9"})),
        (
            "t.xml",
            xml_file,
            {"element": "item"},
            50,
            ("t.xml#9", {"@id": "8", "name": "n 8", "tag": ["a", "b"]}),
        ),
    ],
)
@pytest.mark.usefixtures("small")
def test_tables_that_are_no_text_are_read_in_parts(
    name: str,
    write: Callable[[Path], None],
    keys: dict[str, Any],
    count: int,
    sample: tuple[str, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database, "MOST_ROWS", 7)
    for point in (None, 5, 8):
        trial = Filed(made(tmp_path, f"dies {point}"), name, b"", **keys)
        trial.file.unlink()
        write(trial.file)
        assert trial.run(dies_at=point).state == "completed"
        rows = trial.rows()
        assert len(rows) == count
        assert rows[sample[0]].items() >= sample[1].items()
        assert trial.items_read(trial.run()) == []


def test_hostile_tables_end_in_one_line(tmp_path: Path) -> None:
    for name, body, problem in (
        ("dtd.xml", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a><b>&b;</b></a>", "document type"),
        ("cut.xml", b"<a><b>1</b><b>", "no well-formed XML"),
        ("deep.xml", b"<a>" * 100_000, "nested too deeply"),
        ("long.xml", b"<a><b>" + b"x" * 2_000_000 + b"</b></a>", "an element of more than"),
        ("tag.xml", b"<a><b " + b"x" * 2_000_000, "a tag or comment of more than"),
        ("none.parquet", b"PAR1" + b"x" * 50, "no Parquet"),
        ("meta.parquet", b"PAR1" + b"\xff\xff\xff\x7fPAR1", "bytes of metadata"),
        ("none.sqlite", b"SQLite format 3\0" + b"x" * 5_000, "no SQLite file"),
    ):
        trial = Filed(made(tmp_path, name), name, body)
        run = trial.run()
        [failed] = [job for job in trial.jobs(run) if job.state == "quarantined"]
        assert (name, failed.kind, problem in str(failed.error)) == (name, "data", True), failed


def test_a_database_can_be_written_to_while_its_parts_are_read(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    sqlite_file(file)
    reader = Walk(file, "t.sqlite", Reading(), Position(), Dialect())
    with closing(apsw.Connection(str(file))) as writer:
        writer.execute("INSERT INTO bare VALUES (1)")
    reader.close()


def test_a_key_that_no_row_has_is_one_failure_and_not_a_rejection_of_all(tmp_path: Path) -> None:
    for name, body in (
        ("rows.csv", b"id,name\n1,one\n"),
        ("rows.jsonl", b'{"id": 1, "name": "x"}\n'),
    ):
        trial = Filed(made(tmp_path, name), name, body, key=["id", "nmae"])
        run = trial.run()
        [failed] = [job for job in trial.jobs(run) if job.state == "quarantined"]
        words = f"{name} has no column nmae, which is to make the key; it has id, name"
        assert (failed.kind, run.rejected, words in str(failed.error)) == ("data", 0, True)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("path", "ftp://files.example/a.csv", "or begin with https://, http://, s3://"),
        ("delimiter", ";;", "must be one character"),
        ("encoding", "klingon", "there is no encoding 'klingon'"),
        ("encoding", "base64", "there is no encoding 'base64'"),
    ],
)
def test_keys_that_can_not_work_are_refused_before_a_run(
    key: str, value: str, problem: str, tmp_path: Path
) -> None:
    trial = Filed(tmp_path, "a.csv", b"", **{key: value})
    with pytest.raises(ConfigError, match=problem) as caught, trial.project():
        pass
    assert "is missing" not in str(caught.value)


def test_a_tab_separates_cells_where_it_is_named(tmp_path: Path) -> None:
    trial = Filed(tmp_path, "rows.csv", b"id\tname\n1\ta,b,c\n", key="id", delimiter="\t")
    trial.run()
    assert trial.rows() == {"1": {"id": "1", "name": "a,b,c"}}
