"""Every table of a project, as it is in both databases: what a copy carries from one to the other.

A table comes after those that it refers to. The schema's own table and the one that a copy leaves
its mark in are not here: they belong to a database, not to a project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["plain", "real", "flag"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column that both databases call the same. `real` is a floating number, `flag` a yes or no."""

    name: str
    kind: Kind = "plain"


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of its key come first, and are what its rows are ordered by."""

    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def has_ids(self) -> bool:
        """Whether the database itself makes its ids; those of snapshots are made by workers."""
        return self.name in (
            "source",
            "run",
            "job",
            "event",
            "record",
            "signal",
            "reject",
            "outbox",
            "alert",
            "measured",
            "runbook_execution",
            "idempotency_key",
            "token",
            "inbox",
            "compliance_check",
            "release_act",
            "canary",
            "canary_sample",
        )


def _table(name: str, key: str, rest: str) -> Table:
    columns = tuple(_column(text) for text in f"{key} {rest}".split())
    return Table(name, tuple(column.name for column in columns[: len(key.split())]), columns)


def _column(text: str) -> Column:
    name, _, kind = text.partition(":")
    return Column(name, "real" if kind == "real" else "flag" if kind == "flag" else "plain")


TABLES = (
    _table("project", "id", "name at:real environment release_id cell cell_number"),
    _table(
        "source",
        "id",
        """key paused_at:real pause_reason cooldown_until:real cooldown_reason created_at:real
        level:real""",
    ),
    _table(
        "health", "source_id", "bad_runs bad_run_id good_probes degraded_at:real degraded_reason"
    ),
    _table(
        "onboarding",
        "source_id",
        """state changed_at:real changed_by reason keys owner proposed_at:real proposed_by proposed_why
        approved_at:real approved_by activated_at:real activated_by robots_verdict robots_at:real
        terms_verdict terms_at:real terms_url terms_hash legal_hold_at:real legal_hold_by
        legal_hold_reason cell_state cell cell_token""",
    ),
    _table(
        "compliance_check", "id", "source_id subject verdict at:real actor reason url hash detail"
    ),
    _table("compliance_text", "hash", "content"),
    _table(
        "run",
        "id",
        """source_id kind state key plan pipeline_version actor reason created_at:real started_at:real
        finished_at:real swept_at:real first_event_id inserted updated unchanged rejected retried
        throttled options of_run_id end_reason candidates_accepted candidates_rejected
        candidates_duplicate candidates_passed candidates_dropped pages_unchanged disallowed requests
        bytes seconds:real money:real is_accounted:flag pages_added candidates_added queued_at:real
        is_emptied:flag pages_missing for_drains:flag reopened""",
    ),
    _table(
        "run_stage",
        "run_id stage",
        """unit priority cpu:real memory_mb:real queued running waiting held succeeded skipped quarantined
        cancelled""",
    ),
    _table("probe", "run_id", "would_save rejected throttled slow"),
    _table(
        "job",
        "id",
        """run_id source_id stage unit key state rank:real attempt tries throttles deaths is_resumed:flag
        worker at:real due_at:real flushes returns_to returns_due_at:real""",
    ),
    _table("job_item", "job_id", "parent_id item snapshot_id"),
    _table(
        "job_failure",
        "job_id",
        """attempt kind error traceback at:real cause quarantines first_at:real escalated_at:real
        notes closed_at:real closed_why closed_by_job_id""",
    ),
    _table(
        "cause",
        "source_id cause",
        "pipeline_version failures first_at:real last_at:real escalated_at:real succeeded",
    ),
    _table(
        "reject",
        "id",
        """source_id run_id job_id stage key code reason score:real item snapshot_id at:real
        redriven_run_id""",
    ),
    _table(
        "staged",
        "run_id collection key",
        "data score:real merge source_id snapshot_id base_version at:real",
    ),
    _table("staged_page", "run_id url job_id", "hash parts"),
    _table("replay", "run_id", "state sealed added changed removed at:real"),
    _table(
        "record",
        "id",
        """collection key version data score:real source_id run_id snapshot_id pipeline_version
        updated_at:real is_removed:flag""",
    ),
    _table(
        "record_version",
        "record_id version",
        """data score:real source_id run_id snapshot_id pipeline_version updated_at:real
        superseded_at:real is_removed:flag""",
    ),
    _table("collection", "name", "records"),
    _table(
        "page",
        "source_id url",
        """announced announced_run_id done_announced done_hash done_snapshot_id done_version done_run_id
        done_at:real done_parts at:real""",
    ),
    _table("checkpoint", "source_id partition", "cursor run_id at:real last_offset moves"),
    _table(
        "checkpoint_move",
        "source_id partition number",
        "cursor last_offset run_id at:real actor act reason",
    ),
    _table("run_cursor", "run_id partition", "cursor last_offset at:real"),
    _table("coverage", "source_id partition start_at:real end_at:real", "run_id at:real"),
    _table("signal", "id", "name data source_id run_id at:real actor key is_open:flag"),
    _table(
        "delivery",
        "signal_id source_id schedule",
        "state run_id joins reason at:real waits_for_run_id",
    ),
    _table("landed", "source_id schedule path", "stamp signal_id at:real gone_at:real"),
    _table("hook", "name state", "source_id"),
    _table(
        "schedule",
        "source_id name",
        """version definition words kind next_due_at:real look_at:real last_due_at:real last_run_id
        changed_at:real""",
    ),
    _table("schedule_version", "source_id name version", "definition words at:real actor"),
    _table(
        "tick",
        "source_id schedule due_at:real",
        "version outcome run_id reason at:real was_missed:flag",
    ),
    _table(
        "outbox",
        "id",
        """hook run_id state body created_at:real due_at:real attempts delivered_at:real error""",
    ),
    _table("cadence", "source_id", "class before proposed reason steps last_run_id since:real"),
    _table("announcement", "source_id at:real", "run_id is_open:flag"),
    _table("interruption", "job_id attempt", "since:real"),
    _table("breach", "source_id rule since:real", "run_id detail ended_at:real"),
    _table("verification", "source_id", "promised_at:real verified_at:real run_id"),
    _table("payload", "hash", "segment offset length"),
    _table("snapshot", "id", "job_id run_id url hash status headers fetched_at:real final_url"),
    _table(
        "event",
        "id",
        "at:real kind source_id run_id job_id attempt actor detail data worker origin",
    ),
    _table(
        "seal",
        "number",
        """last_id events gone_through newest_at:real at:real digest hash fingerprints
        pruned_at:real""",
    ),
    _table("tombstone", "event_id act_id", "sealed erased"),
    _table("erasure", "act_id", "source_id at:real"),
    _table("host", "host", "closed_until:real reason"),
    _table("host_wait", "job_id", "host due_at:real"),
    _table("log_line", "id", "at:real source_id run_id job_id attempt level text"),
    _table("host_hours", "host", "definition"),
    _table("pace", "key", "next_at:real"),
    _table("hold", "scope", "at:real actor reason"),
    _table(
        "breaker",
        "key",
        """state since:real opens_at:real opened_at:real counts_until:real trips ramp trying
        trying_until:real in_a_row buckets reason""",
    ),
    _table(
        "budget",
        "scope measure period",
        "period_at:real resets_at:real used:real bound:real warned",
    ),
    _table("holding", "key worker", "amount:real"),
    _table("leader", "name", "holder term expires_at:real"),
    _table(
        "worker",
        "id",
        """host pid version started_at:real lease_expires_at:real slots admits schema loaded
        parent_pid scope""",
    ),
    _table("loaded", "hash", "code"),
    _table(
        "runbook_execution",
        "id",
        "runbook target started_at:real actor steps ended_at:real outcome",
    ),
    _table(
        "runbook_step",
        "execution_id number",
        "step outcome summary findings at:real actor reason",
    ),
    _table(
        "idempotency_key",
        "id",
        "identity key request server at:real lease_expires_at:real answer",
    ),
    _table(
        "token",
        "id",
        """name role prefix hash created_at:real actor reason expires_at:real used_at:real
        revoked_at:real""",
    ),
    _table("sent", "job_id hash", ""),
    _table(
        "alert",
        "id",
        """rule source_id state severity summary cause incident_id opened_at:real seen_at:real
        acknowledged_at:real resolved_at:real snoozed_until:real is_held:flag actor reason finding memory
        evidence""",
    ),
    _table("alert_pin", "snapshot_id alert_id", ""),
    _table("alert_notice", "alert_id route number", "change at:real sent_at:real"),
    _table("rollup", "source_id measure step at:real label", "value:real"),
    _table("run_rollup", "run_id measure label", "value:real"),
    _table("measured", "id", "run_id at:real amounts"),
    _table("open_attempt", "job_id attempt", "at:real"),
    _table("released_attempt", "job_id attempt", "at:real"),
    _table(
        "sql_source",
        "source_id",
        "job_type site_url organization_id organization_name domain is_private:flag",
    ),
    _table("sql_access", "role organization_id", ""),
    _table(
        "inbox",
        "id",
        """verb state source_id run_id key params at:real due_at:real actor reason ended_at:real
        error""",
    ),
    _table("release", "id", "manifest created_at:real actor reason environment"),
    _table("release_content", "hash", "encoding content"),
    _table(
        "release_act",
        "id",
        "verb release_id before_id from_environment at:real actor reason approvals",
    ),
    _table("release_approval", "release_id actor", "at:real reason"),
    _table(
        "canary",
        "id",
        """release_id share percent:real salt state limits looks look began_at:real ended_at:real actor
        reason end_reason""",
    ),
    _table("canary_source", "canary_id source_id", "is_in_share:flag version plans"),
    _table("canary_run", "canary_id run_id", "arm"),
    _table("canary_sample", "id", "run_id job_id sample"),
    _table("rollup_position", "id", "version line holes memory at:real"),
)
