"""`penstock export deploy`: files that Docker, compose and systemd accept, without a secret in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.cli import exits, main
from penstock.settings import load_settings
from tests.unit.test_exporters import told, tool

PROJECT = """\
project: Shop Watch
store: ${DATABASE_URL}
sources:
  acme.com:
    pipeline: products:catalogue
    params: {key: "${API_KEY}"}
"""
CANARY = "canary-19"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a project, with what is exported beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_KEY", CANARY)
    monkeypatch.setenv("DATABASE_URL", f"postgresql://shop:{CANARY}@db/shop")
    monkeypatch.delenv("PENSTOCK_ENV", raising=False)
    (tmp_path / "penstock.yaml").write_text(PROJECT)
    assert main(["export", "deploy", "--dir", ".", "--user", "daemon"]) == exits.DONE
    return tmp_path


def compose_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "compose.yaml").read_text())
    return found


def test_no_secret_is_written(folder: Path) -> None:
    names = {"Dockerfile", ".dockerignore", "compose.yaml", "penstock.compose.yaml"}
    names |= {"penstock-up.service", "penstock-web.service", "penstock.yaml"}
    assert {each.name for each in folder.iterdir()} == names
    assert not any(CANARY in (folder / name).read_text() for name in names)


def test_the_compose_file_is_one_by_its_published_schema(folder: Path) -> None:
    """With Postgres, two workers and web, that wait for each other, and only this machine reaches web."""
    told(
        tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec",
        str(folder / "compose.yaml"),
    )  # fmt: skip
    found = compose_of(folder)
    services = found["services"]
    assert services.keys() == {"postgres", "migrate", "worker", "web"}
    assert services["worker"]["deploy"]["replicas"] == 2
    assert services["web"]["ports"] == ["127.0.0.1:8787:8787"]
    for name, service in services.items():
        assert service.get("depends_on", {}).keys() <= services.keys() - {name}
        for volume in service["volumes"]:
            assert volume.partition(":")[0] in found["volumes"]
        if "depends_on" in service:
            assert service["environment"].keys() == {"PENSTOCK_ENV", "PGPASSWORD", "API_KEY"}
    assert "postgres" not in str(services["postgres"].get("ports", ""))
    assert found["name"] == "shop-watch"


def test_the_compose_file_has_its_own_postgres_laid_over_the_project(folder: Path) -> None:
    assert load_settings(folder, "compose").store.startswith("postgresql://penstock@postgres/")


def test_systemd_accepts_the_services_and_finds_little_that_they_may_do(folder: Path) -> None:
    files = sorted(map(str, folder.glob("*.service")))
    analyze = tool("systemd-analyze")
    assert str(folder) not in told(analyze, "verify", *files)
    for file in files:
        told(analyze, "security", "--offline=true", "--threshold=45", "--no-pager", file)


def test_the_dockerfile_installs_what_the_requirements_pin(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "requirements.txt").write_text("penstock==0.1.0 --hash=sha256:00\n")
    main(["export", "deploy"])
    out = capsys.readouterr().out
    assert 'COPY ["requirements.txt", "./"]' in out
    assert "pip install --require-hashes --requirement requirements.txt\n" in out


def instructions(text: str) -> list[tuple[str, str]]:
    joined = text.replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


KNOWN = {"FROM", "ENV", "RUN", "WORKDIR", "COPY", "USER", "STOPSIGNAL", "ENTRYPOINT", "CMD"}


def test_the_dockerfile_has_known_instructions_and_does_not_run_as_root(folder: Path) -> None:
    found = instructions((folder / "Dockerfile").read_text())
    assert found[0][0] == "FROM"
    assert {word for word, _ in found} <= KNOWN
    assert re.fullmatch(r"python:3\.\d+-slim-bookworm", found[0][1])
    words = [word for word, _ in found]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert dict(found)["USER"] == "penstock"
    # What is installed is a layer of its own, and does not change with the project.
    assert [rest for word, rest in found if word == "COPY"][-1] == ". ."
