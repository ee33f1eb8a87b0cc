"""Streams of the connector `market`, over real websockets: every tick of the ledger once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.job import JobState
from tests.connectors.exchange import Exchange
from tests.connectors.exchange_server import Faults, Served, served
from tests.journeys.rig import Rig, kill, until

START = 1_793_577_600.0
SYMBOLS = ["ACME", "GLOBEX"]


def an_exchange(ticks: int, seed: int = 1) -> Exchange:
    exchange = Exchange(list(SYMBOLS), seed=seed, page_size=50)
    exchange.trade(START, ticks)
    return exchange


def source(server: Served, **live: Any) -> dict[str, Any]:
    return {
        "connector": "market",
        "provider": "plain",
        "url": server.url,
        "label": "sim",
        "kind": "ticks",
        "symbols": SYMBOLS,
        "start": "2026-11-02",
        "token": "a-token-of-the-exchange",
        "retry": {"tries": 8, "base": "20ms", "cap": "50ms"},
        "breaker": "off",
        "fetch": {"allow_private": True, "robots": False},
        "live": {
            "url": server.stream_url, "reorder": 20, "patience": "50ms", "heartbeat": "30s", **live,
        },
    }  # fmt: skip


def described(server: Served) -> dict[str, Any]:
    """The same exchange for the provider `json`: by templates and paths, as a stranger's would be."""
    return {
        **source(server, subscribe='{"subscribe": {symbols}, "after": {last}}', rows="rows"),
        "provider": "json",
        "url": server.url + "/history/{symbol}?from={start}&to={end}&kind=ticks&page={page}",
        "format": {"rows": "rows", "next": "next"},
    }


def ledger(exchange: Exchange) -> dict[str, float]:
    """The key of every tick that there ever was, and its price."""
    from penstock.connectors.market.moments import written

    return {
        f"sim|{name}|{written(row['timestamp'], is_exact=True)}|trade|{row['sequence']}": row[
            "price"
        ]
        for name, rows in exchange.ticks.items()
        for row in rows
    }


def saved(rig: Rig) -> dict[str, float]:
    rows = rig.store.records.of("ticks", limit=10**6)
    assert {row.version for row in rows} <= {1}, "no tick is saved twice"
    return {row.key: row.data["data"]["price"] for row in rows}


def begin(rig: Rig) -> int:
    done = rig.penstock("run", "ticks", "--kind", "stream", "--detach", "--json")
    assert done.returncode == 0, done.stderr
    run: int = json.loads(done.stdout)["run"]
    return run


def fills(rig: Rig) -> list[Any]:
    return [row for row in rig.store.runs.newest("ticks", limit=1000) if row.kind == "backfill"]


@pytest.mark.parametrize("keys", [source, described])
def test_lost_ticks_are_filled_by_linked_backfills_of_exactly_their_range(
    tmp_path: Path, keys: Callable[[Served], dict[str, Any]]
) -> None:
    exchange = an_exchange(60)
    # History does not have them at first.
    exchange.behind = 2
    faults = Faults(losing=frozenset(range(21, 25)))
    with served(exchange, faults) as server, Rig(tmp_path, {"ticks": keys(server)}) as rig:
        run_id = begin(rig)
        process = rig.start("up")
        until(lambda: saved(rig) == ledger(exchange), "the gaps are filled", process=process)
        until(
            lambda: {row.state for row in fills(rig)} == {"completed"}, "they end", process=process
        )
        for fill in fills(rig):
            [symbol] = fill.options.partitions
            lost = [row["timestamp"] / 1e9 for row in exchange.ticks[symbol][20:24]]
            assert (fill.of_run_id, fill.options.params) == (run_id, {"gap": [[21, 24]]})
            assert fill.options.start_at <= lost[0] <= lost[-1] < fill.options.end_at
            assert fill.options.end_at - fill.options.start_at < 0.2
        assert {fill.options.partitions for fill in fills(rig)} == {("ACME",), ("GLOBEX",)}
        process.terminate()
        assert process.wait(timeout=60) == 0, rig.output(process)
    assert set(server.tokens) == {"Bearer a-token-of-the-exchange"}
    assert b"a-token-of-the-exchange" not in (tmp_path / "penstock.db").read_bytes()


FAULTS = Faults(lost=0.02, twice=0.1, early=0.1, cut=0.02, outage=7)


def survived(folder: Path, ticks: int, kills: int, seed: int) -> None:
    """Work off a faulty stream while its worker is killed so often; the records are the ledger."""
    exchange = an_exchange(ticks, seed)
    with served(exchange, FAULTS) as server, Rig(folder, {"ticks": source(server)}) as rig:
        run_id = begin(rig)
        process = rig.start("up")
        inserted = 0
        for number in range(1, kills + 1):
            goal = number * 2 * ticks // (kills + 2)

            # A job under which workers die again and again without any progress ends in quarantine.
            def has_come(goal: int = goal, before: int = inserted) -> bool:
                return sum(server.told.values()) >= goal and rig.run(run_id).inserted > before

            until(has_come, f"{goal} ticks are told", process=process)
            inserted = rig.run(run_id).inserted
            worker = rig.worker_pid(process)
            if worker is not None:
                kill(worker)
        everything = ledger(exchange)
        until(
            lambda: saved(rig) == everything, "every tick is there", within_s=600, process=process
        )
        until(
            lambda: {row.state for row in fills(rig)} == {"completed"},
            "gaps are closed",
            process=process,
        )
        [stream] = rig.jobs(JobState.RUNNING, stage="listen")
        assert stream.attempt > 1
        process.terminate()
        assert process.wait(timeout=60) == 0, rig.output(process)
        assert saved(rig) == everything
        rig.assert_fenced()
        assert rig.store.upkeep.check() == []


def test_killed_in_the_middle_of_a_faulty_stream_every_tick_is_there_once(tmp_path: Path) -> None:
    survived(tmp_path, ticks=600, kills=2, seed=3)


@pytest.mark.torture
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10))
def test_faulty_streams_survive_many_kills(tmp_path: Path, seed: int) -> None:
    survived(tmp_path, ticks=6000, kills=12, seed=seed)


def test_a_silent_connection_is_given_up_and_one_that_resumes_needs_no_backfill(
    tmp_path: Path,
) -> None:
    exchange = an_exchange(200, seed=5)
    faults = Faults(twice=0.1, early=0.1, silent_after=15, resumes=True)
    with served(exchange, faults) as server:
        live = source(server, patience="30s", heartbeat="300ms")
        with Rig(tmp_path, {"ticks": live}) as rig:
            begin(rig)
            process = rig.start("up")
            until(lambda: saved(rig) == ledger(exchange), "every tick is there", process=process)
            [stream] = rig.jobs(JobState.RUNNING, stage="listen")
            process.terminate()
            assert process.wait(timeout=60) == 0, rig.output(process)
            assert (fills(rig), stream.attempt) == ([], 1)
            assert server.connections > 1
            signals = {each.name for each in rig.store.signals.after()}
            assert {"quality.stream_stale", "quality.stream_restored"} <= signals


def test_a_provider_that_refuses_the_stream_is_not_asked_again(tmp_path: Path) -> None:
    exchange, faults = an_exchange(1), Faults(error="invalid token")
    with served(exchange, faults) as server, Rig(tmp_path, {"ticks": source(server)}) as rig:
        done = rig.penstock("run", "ticks", "--kind", "stream")
        assert done.returncode != 0
        [stream] = rig.jobs(JobState.QUARANTINED, stage="listen")
        assert (stream.kind, stream.tries, server.connections) == ("auth", 1, 1)
