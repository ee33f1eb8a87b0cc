"""Verbs: everything that both stores can do, one class for each noun, over whichever database it is."""

from __future__ import annotations

from penstock.store.accounts import Accounts
from penstock.store.announcing import Announcing
from penstock.store.breakers import Breakers
from penstock.store.budgets import Budgets
from penstock.store.cadences import Cadences
from penstock.store.checkpoints import Checkpoints
from penstock.store.coverage import Coverage
from penstock.store.delivering import Delivering
from penstock.store.health import Health
from penstock.store.hours import Hours
from penstock.store.kpis import Kpis
from penstock.store.landings import Landings
from penstock.store.leading import Leading
from penstock.store.lifecycle import Lifecycle
from penstock.store.logs import Logs
from penstock.store.outbox import Outbox
from penstock.store.outlooks import Outlooks
from penstock.store.pacing import Pacing
from penstock.store.pages import Pages
from penstock.store.project_name import ProjectName
from penstock.store.promises import Promises
from penstock.store.quarantine import Quarantine
from penstock.store.reading import Reading
from penstock.store.rejects import Rejects
from penstock.store.replays import Replays
from penstock.store.runs import Runs
from penstock.store.scheduling import Scheduling
from penstock.store.setting_aside import SettingAside
from penstock.store.signals import Signals
from penstock.store.stories import Stories
from penstock.store.streams import Streams
from penstock.store.undoing import Undoing
from penstock.store.upkeep import Upkeep
from penstock.store.workers import Workers


class Verbs(
    Outlooks,
    Rejects,
    Lifecycle,
    Runs,
    Accounts,
    Kpis,
    Workers,
    Leading,
    Scheduling,
    Promises,
    Cadences,
    Announcing,
    Pacing,
    Hours,
    Breakers,
    Budgets,
    SettingAside,
    Quarantine,
    Stories,
    Reading,
    Upkeep,
    Signals,
    Delivering,
    Landings,
    Outbox,
    Streams,
    Checkpoints,
    Pages,
    Health,
    Coverage,
    Replays,
    Undoing,
    ProjectName,
    Logs,
):
    """All of them in one. What a store adds is its database, its turn and its upkeep."""
