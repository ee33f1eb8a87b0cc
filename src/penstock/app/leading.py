"""The chores of a leader, once: for programs that tell Penstock something while nothing of it runs."""

from __future__ import annotations

from penstock.app.project import Project
from penstock.engine.alerting.recent_signals import GIVEN_UP


def judge_signal(project: Project, name: str) -> bool:
    """Judge and send now what alerts are about such signals, unless a leader does; whether this one did.

    It starts no run. It takes a part of a second, or a few where receivers are slow.
    """
    if name not in GIVEN_UP or is_led(project):
        return False
    # Here and not above: the leader brings all of its chores with it.
    from penstock.engine.leader.leader_loop import LeaderLoop, a_holder

    loop = LeaderLoop(project, project.open_store(), a_holder(), has_scheduler=False)
    try:
        loop.look()
    finally:
        loop.close()
    return True


def is_led(project: Project) -> bool:
    """Whether any process does the chores of a leader now."""
    now = project.connection.now()
    return any(row.expires_at > now for row in project.connection.leaders.all())
