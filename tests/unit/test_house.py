"""Rules of the house that no linter knows: what must not stand anywhere in this repository."""

from __future__ import annotations

import ast
import gc
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
REQUIREMENTS = ROOT / "requirements"

UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve"}
UNSAFE_CALLS = {
    "eval",
    "exec",
    "os.system",
    "os.popen",
    "yaml.load",
    "yaml.load_all",
    "yaml.full_load",
    "yaml.full_load_all",
    "yaml.unsafe_load",
    "yaml.unsafe_load_all",
}
WAYS_OUT = {"http.client", "urllib.request"}
CONNECTING = {
    "create_connection",
    "create_datagram_endpoint",
    "create_unix_connection",
    "getaddrinfo",
    "open_connection",
    "open_unix_connection",
    "sock_connect",
    "urlopen",
}
# Put together from pieces, so that this file does not name them either.
REGISTRY = re.compile(
    "|".join(["py" + "pi", "python" + "hosted", "pi" + "wheels", "anaconda" + r"\.org"])
    + r"|--(extra-)?"
    + "index-url|--find"
    + "-links",
    re.IGNORECASE,
)
MACHINE_PATH = re.compile(
    r"(?<![\w.:/-])/("
    + "|".join(["ro" + "ot", "wo" + "rk", "ho" + "me", "Us" + "ers"])
    + r")/[\w.]"
)
NAMES_NO_MACHINE = {".png"}


@cache
def tracked() -> tuple[Path, ...]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("only a checkout knows which files are tracked")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    files = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return tuple(file for file in files if file.is_file() and file.suffix not in NAMES_NO_MACHINE)


@cache
def modules() -> tuple[tuple[Path, ast.Module], ...]:
    files = sorted(SOURCE.rglob("*.py"))
    # A million nodes that all stay: looking for garbage among them takes four times what parsing takes.
    gc.disable()
    try:
        return tuple((file, ast.parse(file.read_text(encoding="utf-8"))) for file in files)
    finally:
        gc.freeze()
        gc.enable()


def where(file: Path, line: int) -> str:
    return f"{file.relative_to(ROOT)}:{line}"


def lines_with(pattern: re.Pattern[str]) -> Iterator[str]:
    for file in tracked():
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                yield where(file, number)


def imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        return {node.module.split(".")[0]}
    return set()


def test_nothing_unpickles_evaluates_or_loads_unsafe_yaml() -> None:
    assert [where(file, line) for file, tree in modules() for line in unsafe_lines(tree)] == []


def unsafe_lines(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and imported(node) & UNSAFE_MODULES:
            yield node.lineno
        if isinstance(node, ast.Call) and called(node) in UNSAFE_CALLS:
            yield node.lineno


def called(node: ast.Call) -> str:
    """The name of what is called, as `eval` or `yaml.load`; empty for anything longer."""
    match node.func:
        case ast.Name(name):
            return name
        case ast.Attribute(ast.Name(module), name):
            return f"{module}.{name}"
    return ""


def test_the_search_for_what_is_unsafe_finds_it() -> None:
    texts = ["import pickle", "from pickle import loads", "eval(a)", "x = yaml.load(text)"]
    assert [list(unsafe_lines(ast.parse(text))) for text in texts] == [[1]] * len(texts)
    assert list(unsafe_lines(ast.parse("yaml.safe_load(text)\nself.eval(a)"))) == []


def test_no_command_goes_through_a_shell() -> None:
    found = [
        where(file, node.value.lineno)
        for file, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "shell"
    ]
    assert found == []


def going_out(tree: ast.AST) -> Iterator[int]:
    """The lines that go out to the network by ways that an import contract can't see."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and {alias.name for alias in node.names} & WAYS_OUT:
            yield node.lineno
        if isinstance(node, ast.ImportFrom):
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            if ({node.module} | named) & WAYS_OUT:
                yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_given_one = any(keyword.arg == "sock" for keyword in node.keywords)
            if node.func.attr in CONNECTING and not is_given_one:
                yield node.lineno


def test_the_search_for_ways_out_finds_them() -> None:
    texts = [
        "import http.client",
        "from http import client",
        "from urllib.request import urlopen",
        "asyncio.open_connection('acme.com', 80)",
        "loop.getaddrinfo('acme.com', 80)",
    ]
    assert [list(going_out(ast.parse(text))) for text in texts] == [[1]] * len(texts)
    assert list(going_out(ast.parse("asyncio.open_connection(sock=one_of_a_pair)"))) == []


def test_only_http_goes_out_to_the_network() -> None:
    """Beside the import contract of the same name."""
    found = [
        where(file, line)
        for file, tree in modules()
        if file.relative_to(SOURCE / "penstock").parts[0] != "http"
        for line in going_out(tree)
    ]
    assert found == []


def sql_texts() -> Iterator[tuple[str, str]]:
    for file in sorted(SOURCE.rglob("*.sql")):
        yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")
    for file, tree in modules():
        for node in _outside_reading(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield where(file, node.lineno), node.value


def _outside_reading(tree: ast.AST) -> Iterator[ast.AST]:
    # A function called `reading` holds one moment still for several reads, and ends in ROLLBACK.
    left = [tree]
    while left:
        node = left.pop()
        yield node
        left.extend(
            inner
            for inner in ast.iter_child_nodes(node)
            if not (isinstance(inner, ast.FunctionDef) and inner.name == "reading")
        )


def deferred_begins(sql: str) -> list[str]:
    """Every BEGIN of a transaction that does not say IMMEDIATE; the BEGIN of a trigger is none."""
    bare = re.sub(r"--[^\n]*", "", sql)
    bare = re.sub(r"\bCREATE\s+(TEMP\s+)?TRIGGER\b.*?\bEND\b\s*;", "", bare, flags=re.DOTALL)
    return re.findall(r"(?:^|;)\s*BEGIN\b(?!\s+IMMEDIATE\b)[^;]*", bare)


def test_the_search_for_deferred_transactions_finds_them() -> None:
    assert deferred_begins("BEGIN") == ["BEGIN"]
    assert deferred_begins("SELECT 1; BEGIN DEFERRED;") == ["; BEGIN DEFERRED"]
    assert deferred_begins("BEGIN IMMEDIATE") == []
    assert deferred_begins("CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END;") == []


def test_every_transaction_that_may_write_begins_immediate() -> None:
    """In SQLite: Postgres has no such thing, and waits for rows instead of the file.

    What is exported as SQL is for servers.
    """
    of_servers = ("/postgres/", "/exporters/")
    texts = [each for each in sql_texts() if not any(part in each[0] for part in of_servers)]
    found = [place for place, sql in texts if deferred_begins(sql)]
    assert found == []


def test_no_tracked_file_names_a_registry() -> None:
    assert list(lines_with(REGISTRY)) == []


def test_no_tracked_file_names_a_path_of_one_machine() -> None:
    assert list(lines_with(MACHINE_PATH)) == []


# Requirements.


def pins(name: str) -> dict[str, int]:
    """Each pinned requirement of a compiled file, with how many hashes it carries."""
    text = (REQUIREMENTS / name).read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, int] = {}
    for line in text.splitlines():
        entry = line.split("#")[0].strip()
        if entry:
            found[entry.split(" --hash")[0].strip()] = len(
                re.findall(r"--hash=sha256:[0-9a-f]{64}", entry)
            )
    return found


def names(lines: list[str]) -> set[str]:
    wanted = (
        re.match(r"[A-Za-z0-9._-]+", line) for line in lines if line[:1] not in {"#", "-", ""}
    )
    return {match[0].lower() for match in wanted if match}


@pytest.mark.parametrize(
    "name", ["runtime", "build", "test", "bench", "prefect", "dagster", "airflow"]
)
def test_every_requirement_is_pinned_with_a_hash(name: str) -> None:
    compiled = pins(f"{name}.txt")
    assert compiled
    assert [pin for pin, hashes in compiled.items() if "==" not in pin or not hashes] == []
    wanted = names((REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8").splitlines())
    assert wanted <= {pin.split("==")[0].lower() for pin in compiled}


@pytest.mark.parametrize("name", ["test", "bench", "prefect", "dagster", "airflow"])
def test_what_is_tested_and_measured_is_what_is_installed(name: str) -> None:
    # Without the markers: a package that more of the others need may be wanted on more Pythons.
    installed, others = (
        {pin.split(" ;")[0] for pin in pins(file)} for file in ("runtime.txt", f"{name}.txt")
    )
    assert installed <= others


def test_the_wheel_asks_for_what_the_runtime_requirements_say() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (REQUIREMENTS / "runtime.in").read_text(encoding="utf-8").splitlines()
    assert sorted(project["dependencies"]) == sorted(line for line in lines if line[:1] != "#")


def test_make_help_explains_every_target() -> None:
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.findall(r"^\.PHONY: (.*)$", make, flags=re.MULTILINE)[0].split()
    explained = re.findall(r"^([a-z-]+):.*## \S", make, flags=re.MULTILINE)
    assert phony == explained
    assert {"help", "setup", "demo", "test", "check", "bench", "torture"} <= set(explained)


NOUNS = """attempts bytes candidates changes columns days entries events fields files holidays hours
items jobs lines minutes pages partitions probes records rejects requests rows runs schedules segments
signals slots snapshots sources starts steps times tries units versions windows workers""".split()
# Numbers that are never one, and words that are no numbers.
NEVER_ONE = re.compile(
    r"\{(LONGEST|MAX|MOST|SHORTEST)_|(more|longer|larger) than|\{penstock\}|run_kind|interval_s|stage \{"
    r"|\{environment\} runs|runs something"  # the verb
    r"|DAYS_OF_A_WEEK"  # SQLite's modifier of dates, which is always a plural
)


def test_a_number_and_its_noun_are_put_together_by_one_function() -> None:
    """`1 requests` is what comes of writing it by hand; `count(n, "request")` knows better."""
    by_hand = re.compile(rf"(?<!of )\{{[^{{}}]+\}} ({'|'.join(NOUNS)})\b(?! at a)")
    found = [
        f"{file.name}:{number}: {line.strip()}"
        for file in SOURCE.rglob("*.py")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if 'f"' in line and by_hand.search(line) and not NEVER_ONE.search(line)
    ]
    assert found == []


def test_no_two_views_have_one_name() -> None:
    """The HTTP API and the reference know a view by its name."""
    files = (SOURCE / "penstock" / "app" / "views").glob("*.py")
    names = [
        node.name
        for file in files
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    assert len(names) > 50
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
