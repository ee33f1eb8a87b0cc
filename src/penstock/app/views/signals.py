"""Signals as front ends see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Content, ContentKey, Time, View

if TYPE_CHECKING:
    from penstock.store.deliveries import DeliveryRow, StandingRow
    from penstock.store.signals import SignalRow


class WaitingView(View, frozen=True, kw_only=True):
    """A schedule that a signal starts."""

    source: str
    schedule: str


class RaisedView(View, frozen=True, kw_only=True):
    """A signal that was raised; not new if its key was raised before. `waiting` are the schedules."""

    id: int = msgspec.field(name="signal")
    name: str
    source: str | None
    key: ContentKey[str | None]
    is_new: bool
    waiting: tuple[WaitingView, ...]


class SignalDeliveryView(View, frozen=True, kw_only=True):
    """The delivery of a signal to one schedule."""

    source: str
    schedule: str
    state: str
    run_id: int | None = msgspec.field(name="run")
    joins: int | None
    reason: str
    at: Time


class SignalView(View, frozen=True, kw_only=True):
    """A signal that a run or a person raised, and the runs that it started."""

    id: int = msgspec.field(name="signal")
    name: str
    source: str | None
    run_id: int | None = msgspec.field(name="run")
    at: Time
    actor: str
    key: ContentKey[str | None]
    data: Content[Any]
    deliveries: tuple[SignalDeliveryView, ...]


class QueuedSignalView(View, frozen=True, kw_only=True):
    """A signal in the queue of a schedule: since when, and what it waits for."""

    signal_id: int = msgspec.field(name="signal")
    name: str
    about: str | None = msgspec.field(name="source")
    run_id: int | None = msgspec.field(name="run")
    schedule: str
    state: str
    at: Time = msgspec.field(name="since")
    waits_for: str


class QueueView(View, frozen=True, kw_only=True):
    """The first signals in the queues of a source, and how many there are in all."""

    signals: tuple[QueuedSignalView, ...]
    total: int


def signal_view(row: SignalRow, became: Sequence[DeliveryRow]) -> SignalView:
    return SignalView(
        id=row.id,
        name=row.name,
        source=row.source,
        run_id=row.run_id or None,
        at=row.at,
        actor=row.actor,
        key=row.key,
        data=row.data,
        deliveries=tuple(_delivery(each) for each in became),
    )


def _delivery(row: DeliveryRow) -> SignalDeliveryView:
    told = msgspec.structs.asdict(row)
    del told["signal_id"]
    return SignalDeliveryView(**told)


def queued_view(row: StandingRow, waits_for: str) -> QueuedSignalView:
    return QueuedSignalView(
        signal_id=row.signal_id,
        name=row.name,
        about=row.about,
        run_id=row.run_id or None,
        schedule=row.schedule,
        state=row.state,
        at=row.at,
        waits_for=waits_for,
    )
