"""`penstock export`: written where it is wanted, said what is missing, and no secret in it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from penstock import Project
from penstock.cli import exits, main
from penstock.errors import UsageError

CANARY = "canary-17"
PROJECT = """\
project: shop-watch
sources:
  acme.com:
    pipeline: products:catalogue
    params: {key: "${API_KEY}", literal: "$${NOT_ONE}"}
    schedule: {cron: "30 2 * * *", timezone: Europe/Paris}
  feed:
    pipeline: feeds:news
    schedule: {every: 6h}
  by-hand: {pipeline: feeds:news}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_KEY", CANARY)
    monkeypatch.delenv("PENSTOCK_ENV", raising=False)
    (tmp_path / "penstock.yaml").write_text(PROJECT)
    return tmp_path


def export(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    code = main(["export", *line.split()])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.usefixtures("folder")
def test_a_whole_export_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    for target in (
        "github-actions",
        "systemd",
        "crontab --timezone Europe/Paris --source acme.com",
    ):
        code, out, err = export(capsys, target)
        assert (code, err) == (exits.DONE, "")
        assert "acme.com" in out


@pytest.mark.usefixtures("folder")
def test_what_is_left_out_is_told_and_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = export(capsys, "crontab")
    assert code == exits.PARTIAL
    assert err.startswith("left out: acme.com, schedule main: cron has one time zone, here UTC")
    assert "# left out: acme.com, schedule main: cron has one time zone" in out


@pytest.mark.parametrize("target", ["github-actions", "systemd", "crontab"])
def test_secrets_are_written_by_name_only(
    folder: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    where = "--dir units" if target == "systemd" else "--output file"
    for line in (target, f"{target} {where}"):
        _, out, err = export(capsys, line)
        assert CANARY not in out + err
    written = "".join(
        file.read_text() for file in folder.rglob("*") if file.suffix != ".yaml" and file.is_file()
    )
    assert "API_KEY" in written
    assert CANARY not in written
    assert "NOT_ONE" not in written


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ("{every: 6h}", "{every: '${EVERY}'}", "sources.feed.schedule.every"),
        ("project: shop-watch", "project: ${EVERY}", "project"),
        ("project: shop-watch", "store: 'sqlite:${EVERY}.db'", "store"),
    ],
)
def test_what_would_be_written_down_may_not_come_from_the_environment(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    after: str,
    path: str,
) -> None:
    monkeypatch.setenv("EVERY", "12h")
    (folder / "penstock.yaml").write_text(PROJECT.replace(before, after))
    code, out, err = export(capsys, "systemd")
    assert (code, out) == (exits.USAGE, "")
    assert f"penstock.yaml: {path} takes ${{EVERY}} from the environment" in err
    assert "12h" not in err


def test_a_project_on_postgres_is_not_kept_in_a_cache(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE", "postgresql://shop:canary-17@db/shop")
    (folder / "penstock.yaml").write_text("store: ${DATABASE}\n" + PROJECT)
    code, out, _ = export(capsys, "github-actions")
    assert code == exits.DONE
    assert "actions/cache" not in out
    assert "penstock[postgres]==" in out
    assert "DATABASE: ${{ secrets.DATABASE }}" in out
    assert CANARY not in out


def test_a_workflow_installs_what_knows_exchanges_where_the_project_names_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "  fx: {pipeline: 'p:p', schedule: {every: 1h, during: in-session, calendar: XNYS}}\n"
    (folder / "penstock.yaml").write_text(PROJECT + more)
    _, out, err = export(capsys, "github-actions")
    assert "left out: fx, schedule main: GitHub would start it outside its hours" in err
    assert "'penstock[markets]==" in out


def test_a_workflow_knows_where_the_project_is_in_its_repository(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = folder / "apps" / "shop"
    shop.mkdir(parents=True)
    (folder / "penstock.yaml").rename(shop / "penstock.yaml")
    (shop / "requirements.txt").write_text("")
    (folder / ".git").mkdir()
    code, _, _ = export(capsys, f"github-actions --project {shop} --output .github/workflows/p.yml")
    assert code == exits.DONE
    [job] = yaml.safe_load((folder / ".github/workflows/p.yml").read_text())["jobs"].values()
    steps = job["steps"]
    assert {s["working-directory"] for s in steps if "timeout-minutes" in s} == {"apps/shop"}
    assert steps[-1]["with"]["path"].split() == [
        "apps/shop/penstock.db", "apps/shop/penstock.db-wal", "apps/shop/snapshots",
    ]  # fmt: skip
    install = next(s["run"] for s in steps if s.get("name") == "Install")
    assert "--requirement apps/shop/requirements.txt" in install


def test_a_workflow_installs_by_hashes_where_there_are_some(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        "# No hashes: put them and penstock into requirements.txt"
        in export(capsys, "github-actions")[1]
    )
    (folder / "requirements.txt").write_text("penstock==1 --hash=sha256:00\n")
    _, out, _ = export(capsys, "github-actions")
    assert "pip install --require-hashes --requirement requirements.txt" in out
    assert "No hashes" not in out


def test_units_may_write_where_the_project_does(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text(
        "store: sqlite:/var/lib/shop/p.db\nsnapshots: /data/raw\n" + PROJECT
    )
    export(capsys, "systemd --dir units --user shop")
    services = [file.read_text() for file in (folder / "units").glob("*.service")]
    assert len(services) == 2
    for text in services:
        assert f'ReadWritePaths="{folder}" "/var/lib/shop" "/data/raw"\n' in text
        assert "User=shop\n" in text
        assert f"EnvironmentFile={folder}/penstock.env\n" in text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "crontab --source acme.con",
            "penstock.yaml has no source 'acme.con'\n  did you mean 'acme.com'?",
        ),
        ("crontab --timezone Europe/Pariss", "did you mean 'Europe/Paris'?"),
        ("crontab --user a;b", "'a;b' can't be the name of a user"),
        ("systemd --dir penstock.yaml", "can't be written"),
        ("github-action", "did you mean 'github-actions'?"),
    ],
)
def test_a_wrong_line_is_told(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    code, out, err = export(capsys, line)
    assert (code, out) == (exits.USAGE, "")
    assert message in err


def test_a_store_outside_of_the_repository_can_not_be_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text("store: sqlite:/var/lib/shop/p.db\n" + PROJECT)
    code, _, err = export(capsys, "github-actions")
    assert code == exits.USAGE
    assert "/var/lib/shop/p.db is outside of the repository" in err


def test_a_project_without_schedules_has_nothing_to_export(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = export(capsys, "systemd --source by-hand")
    assert (code, out) == (exits.DONE, "")
    assert err == "no schedules: every source runs manually\n"


def test_program_gets_the_files_and_what_they_lack_without_a_database(folder: Path) -> None:
    with Project.open(folder) as project:
        found = project.exports.crontab(["ACME.com"])
        whole = project.exports.systemd(["feed"], user="shop")
        for wrong, code in (
            ({"user": "a;b"}, "bad_user"),
            ({"sources": ["feeed"]}, "no_source"),
        ):
            with pytest.raises(UsageError) as refused:
                project.exports.crontab(**wrong)
            assert refused.value.code == code

    assert (found.target, found.is_whole, len(found.left_out)) == ("crontab", False, 1)
    assert found.as_json().keys() == {"target", "files", "left_out", "otherwise", "notes"}
    assert whole.is_whole
    assert sorted(name.rpartition(".")[2] for name in whole.files) == ["service", "timer"]
    assert not (folder / "penstock.db").exists()
