"""A host that is cut off or lost: its jobs run again elsewhere in time, and nothing is lost or doubled.

The host is a network namespace with a cable that can be pulled. Where there can be none it is reached through
a proxy that holds everything back, which to Postgres and to Penstock is nearly the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import pytest

from penstock.store.workers import LEASE_S
from tests.clocked import in_time
from tests.journeys.holding import HOLDING, forget_held, holding_source, let_go, wait_until_held
from tests.journeys.rig import CLOCK, ENVIRONMENT, PENSTOCK, Rig, until
from tests.postgres.fixtures import an_installation
from tests.postgres.namespaces import Namespace, why_not
from tests.postgres.proxy import Proxy
from tests.postgres.server import ROLE, Server
from tests.postgres.workspace import Workspace

RUN_AGAIN_S = 20.0
PAGES = 4


class Cable(Protocol):
    """What connects the far host with the server."""

    def pull_plug(self) -> None: ...

    def plug_in(self) -> None: ...


class Far:
    """A host that is reached by a cable, and the server at its other end."""

    def __init__(self, server: Server, cable: Cable, address: str, port: int) -> None:
        self.server = server
        self.cable = cable
        self.near_url = server.create_database("journey")
        self.url = f"postgresql://{ROLE}@{address}:{port}/journey"
        self._processes: list[subprocess.Popen[str]] = []

    def start(self, rig: Rig, *words: str) -> subprocess.Popen[str]:
        (rig.folder / "penstock.far.yaml").write_text(json.dumps({"store": self.url}))
        command = [*PENSTOCK, *words, "--env", "far"]
        if isinstance(self.cable, Namespace):
            command = self.cable.command(*command)
        with open(rig.folder / "far.txt", "a") as said:
            process = subprocess.Popen(
                command, cwd=rig.folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                stdout=said, stderr=said, text=True,
            )  # fmt: skip
        self._processes.append(process)
        return process

    def lose_power(self, rig: Rig) -> None:
        """Everything on the host ends, and there is no cable on which it could be noticed."""
        self.cable.pull_plug()
        for process in self._processes:
            for pid in [process.pid, *rig.worker_pids(process)]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def far(workspace: Workspace) -> Iterator[Far]:
    with namespace_host(workspace) if not why_not() else proxied_host(workspace) as made:
        yield made
        made.close()


@contextmanager
def namespace_host(workspace: Workspace) -> Iterator[Far]:
    with Namespace() as host:
        listen = f"listen_addresses = '127.0.0.1,{host.server}'\n"
        server = Server.start(an_installation(), workspace, listen)
        with (server.folder / "data" / "pg_hba.conf").open("a") as doors:
            doors.write(f"host all {ROLE} 198.18.0.0/15 trust\n")
        server.admin("SELECT pg_reload_conf()")
        yield Far(server, host, host.server, server.port)
        server.close()


class Frozen:
    """A cable made of a proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self.pull_plug, self.plug_in = proxy.freeze, proxy.thaw


@contextmanager
def proxied_host(workspace: Workspace) -> Iterator[Far]:
    print(f"no namespace, but a proxy: {why_not()}")
    server = Server.start(an_installation(), workspace)
    with Proxy(server.port) as proxy:
        yield Far(server, Frozen(proxy), "127.0.0.1", proxy.port)
        proxy.heal()
    server.close()


@contextmanager
def a_rig(folder: Path, far: Far) -> Iterator[Rig]:
    with Rig(folder, {"shop": holding_source(PAGES)}, HOLDING, store=far.near_url) as rig:
        yield rig


def hold_all_on(far: Far, rig: Rig) -> tuple[int, subprocess.Popen[str], subprocess.Popen[str]]:
    """Every page is held by the far host, and the near one has watched for as long as it must."""
    there = far.start(rig, "up")
    until(rig.store.workers.all, "the far host works")
    [run_id] = rig.enqueue("shop")
    wait_until_held(rig, PAGES)
    here = rig.start("up")
    until(lambda: rig.worker_pid(here), "the near host works")
    watched_at = CLOCK.monotonic() + LEASE_S
    until(lambda: CLOCK.monotonic() > watched_at, "it has watched for a lease")
    forget_held(rig)
    return run_id, there, here


def assert_run_again_in_time(rig: Rig, since: float) -> None:
    again = [event for event in rig.events("job.started") if event.attempt == 2]
    assert len(again) == PAGES
    waited_s = max(event.at for event in again) - since
    print(f"run again after {waited_s:.1f} s")
    in_time(waited_s, RUN_AGAIN_S)


def end(rig: Rig, run_id: int, here: subprocess.Popen[str]) -> None:
    let_go(rig)
    until(lambda: rig.run(run_id).is_ended, "the run has ended")
    assert rig.run(run_id).state == "completed"
    rig.assert_records({str(number) for number in range(PAGES)})
    here.terminate()
    assert here.wait(timeout=120) == 0, rig.output(here)


def test_partitioned_host_gives_way_and_works_again_when_it_is_healed(
    tmp_path: Path, far: Far
) -> None:
    with a_rig(tmp_path, far) as rig:
        run_id, there, here = hold_all_on(far, rig)
        lost = set(rig.worker_pids(there))
        cut_at = rig.store.now()
        far.cable.pull_plug()
        wait_until_held(rig, PAGES)
        assert_run_again_in_time(rig, cut_at)
        far.cable.plug_in()
        until(lambda: set(rig.worker_pids(there)) - lost, "it works again", within_s=60)
        end(rig, run_id, here)
        there.terminate()
        assert there.wait(timeout=120) == 0
        rig.assert_sound()
        assert "Traceback" not in (tmp_path / "far.txt").read_text()


def test_jobs_of_a_host_that_lost_its_power_run_again_elsewhere(tmp_path: Path, far: Far) -> None:
    with a_rig(tmp_path, far) as rig:
        run_id, _, here = hold_all_on(far, rig)
        lost_at = rig.store.now()
        far.lose_power(rig)
        wait_until_held(rig, PAGES)
        assert_run_again_in_time(rig, lost_at)
        end(rig, run_id, here)
        rig.assert_sound()
