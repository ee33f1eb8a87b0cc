"""Histories of the connector `market` by seed: outages, duplicates, disorder, corrections and splits."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock.testing import answer
from tests.connectors.exchange import DAY_S, Exchange, Row, iso
from tests.connectors.test_market import MarketPlace, an_exchange, bars, history, trial_of

SYMBOLS = ("ACME", "GLOBEX", "INITECH")
BEGUN, ROUNDS = 6, 6


class Trouble:
    """An exchange on whose days things go wrong, as its seed says; and what is true of it all the same."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.exchange: Exchange = an_exchange(BEGUN, SYMBOLS)
        # What each day ended with, whatever is answered: the exchange may repeat itself, in any order.
        self.true: dict[str, dict[str, Row]] = {
            symbol: {row["timestamp"]: row for row in rows}
            for symbol, rows in self.exchange.bars.items()
        }
        self.splits: dict[str, dict[str, float]] = {symbol: {} for symbol in SYMBOLS}

    def trade(self, at: float) -> None:
        """One more day, until which the last two may be corrected."""
        for symbol in SYMBOLS:
            for corrected in (at - DAY_S, at):
                if corrected == at or self.rng.random() < 0.3:
                    close = round(self.rng.uniform(50, 150), 2)
                    at_ = iso(corrected)
                    self.true[symbol][at_] = {"timestamp": at_, "close": close, "volume": 1000.0}
            if self.rng.random() < 0.15:
                when = self.rng.choice(list(self.true[symbol]))
                self.splits[symbol][when] = self.rng.choice((2, 3, 0.5))
        self._answer()

    def _answer(self) -> None:
        for symbol in SYMBOLS:
            rows = list(self.true[symbol].values())
            rows += [row for row in rows if self.rng.random() < 0.2]
            self.rng.shuffle(rows)
            self.exchange.bars[symbol] = rows
            self.exchange.actions[symbol] = [
                {"timestamp": at, "event_type": "split", "ratio": ratio}
                for at, ratio in self.splits[symbol].items()
            ]

    def strike(self, place: MarketPlace) -> None:
        """What is wrong during the next run."""
        # History or splits of one symbol are a page for people.
        what = f"{self.rng.choice(('history', 'actions'))}/{self.rng.choice(SYMBOLS)}"
        self.exchange.broken = what if self.rng.random() < 0.5 else ""
        if self.rng.random() < 0.4:
            status = self.rng.choice((500, 503, 429))
            place.answers = [answer("", status=status)] * self.rng.randrange(1, 3)

    def adjusted(self, symbol: str) -> dict[str, float]:
        found = {}
        for at, row in self.true[symbol].items():
            ratio = 1.0
            for when, each in self.splits[symbol].items():
                ratio *= each if at < when else 1.0
            found[at] = row["close"] / ratio
        return found


def survived(folder: Path, seed: int) -> None:
    """Run after run while things go wrong, and once when all is well: what is saved is what is true."""
    trouble = Trouble(seed)
    trial = trial_of(folder, trouble.exchange, adjust="split", **history(BEGUN))
    place = trial.place
    assert isinstance(place, MarketPlace)
    trial.run()
    for _ in range(ROUNDS):
        for _ in range(trouble.rng.randrange(1, 4)):
            trouble.trade(trial.clock.now() // DAY_S * DAY_S)
            trial.clock.advance(DAY_S)
        trouble.strike(place)
        trial.run()
        place.answers = []
    trouble.exchange.broken = ""
    assert trial.run().state == "completed"
    for symbol in SYMBOLS:
        raw = {at: each["close"] for at, each in bars(trial, symbol).items()}
        assert raw == {at: row["close"] for at, row in trouble.true[symbol].items()}
        adjusted = bars(trial, symbol, "documents.adjusted")
        assert {at: each["close"] for at, each in adjusted.items()} == pytest.approx(
            trouble.adjusted(symbol)
        )


def test_troubled_history_is_read_as_it_was(tmp_path: Path) -> None:
    survived(tmp_path, seed=4)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 160))
def test_troubled_histories_are_read_as_they_were(tmp_path: Path, seed: int) -> None:
    survived(tmp_path, seed)


def test_symbol_whose_splits_can_not_be_read_fails_alone_and_is_adjusted_later(
    tmp_path: Path,
) -> None:
    exchange = an_exchange(BEGUN)
    trial = trial_of(tmp_path, exchange, adjust="split", **history(BEGUN))
    trial.run()
    for symbol in exchange.symbols:
        days = (trial.clock.now() // DAY_S + day for day in range(20))
        exchange.bars[symbol] += [{"timestamp": iso(day * DAY_S), "close": day} for day in days]
    trial.clock.advance(20 * DAY_S)
    exchange.broken = "actions/ACME"
    run = trial.run()
    assert run.state == "completed"
    assert len(bars(trial, "GLOBEX", "documents.adjusted")) == BEGUN + 20
    assert len(bars(trial, "ACME", "documents.adjusted")) == BEGUN
    with trial.project() as project:
        [reject] = project.rejects.list().items
        assert (reject.code, "ACME is not adjusted" in reject.reason) == ("not_settled", True)
    exchange.broken = ""
    trial.run()
    assert len(bars(trial, "ACME", "documents.adjusted")) == BEGUN + 20
    # Where it is all of them, the run fails, as before.
    exchange.broken = "actions/"
    assert trial.run().state == "failed"
