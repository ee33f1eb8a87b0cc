"""Verbs of the store by the names they had before it had nouns: `project.store.run(12)`; for one release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.store.store import Store

# By noun: the old name, and after `=` the name that it has there, if that is another.
OLD_VERBS = {
    "announcements": "announcements=of open_announcements=open bring_forward",
    "breakers": "breakers=all open_breaker=open close_breaker=close breaker_key=key",
    "budgets": "budgets=all exhausted_budgets=exhausted renew_budgets=renew",
    "cadences": (
        "cadences=all begin_cadences=begin runs_for_cadence=runs note_cadence=note "
        "propose_cadence=propose move_cadence=move"
    ),
    "checkpoints": (
        "checkpoints=cursors checkpoint_rows=all checkpoint_history=history "
        "run_cursors=of_run newest_cursors=newest_of_runs has_windows units_since "
        "rewind_checkpoint=rewind"
    ),
    "deliveries": (
        "open_signals deliver regather has_to_deliver queued_deliveries=queued "
        "start_delivery=start skip_delivery=skip put_off_delivery=put_off "
        "deliveries=of_signals standing_deliveries=standing"
    ),
    "files": "landed land note_gone",
    "hooks": (
        "plan_hooks=plan claim_outbox=claim accept_outbox=accept refuse_outbox=refuse "
        "retry_outbox=retry outbox"
    ),
    "hosts": (
        "reserve_places=reserve held_at_hosts=held close_hosts=close closed_hosts=closed "
        "watched_hosts=watched note_hosts=note admit_hosts=admit plan_hours"
    ),
    "jobs": (
        "enqueue cancel_job=cancel retry_job=retry hold_job=hold unhold_job=unhold set_aside "
        "jobs=find job=get job_detail=detail last_job_of=last_of has_startable "
        "startable_stages has_suspects story beat_stream stream_alive_at running_streams"
    ),
    "journal": "events follow follow_kinds",
    "kpis": "kpis=report",
    "leaders": "lead resign leaders=all",
    "logs": "add_log_lines=add log_of_run=of_run log_of_job=of_job",
    "outlooks": "explain outlooks=of_sources",
    "pages": "page=get forget_pages=forget",
    "promises": "watch_promises=watch verification breaches",
    "quarantine": (
        "entries=each entry=get count_entries=count causes release_entries=release "
        "discard_entries=discard close_answered_entries=close_answered expire_entries=expire "
        "note_entry=note"
    ),
    "records": "collections records=of each_record=each versions",
    "rejects": (
        "rejects=newest count_rejects=count stages_of_rejects=stages reject_item=item "
        "rejects_by_code=by_code redrive"
    ),
    "replays": (
        "replay_scope=scope replayed_jobs=jobs replayed_snapshot=snapshot replay_state=state "
        "undecided has_staged seal_replay=seal staged_changes staged_same reject_shift "
        "begin_commit commit_batch end_commit drop_replay=drop drop_old_replay=drop_old"
    ),
    "runs": (
        "start_run=start start_draft start_recovered continue_run=continue_ restamp "
        "pause_run=pause resume_run=resume cancel_run=cancel sweep_cancelled retry_failed "
        "runs=newest run=get runs_by_id=by_id run_plan=plan run_facts=facts runs_since=since "
        "runs_made_of=made_of account failures_by_kind failures_by_cause backlog"
    ),
    "schedules": (
        "plan_schedules=plan next_look_at due_schedules=due put_off has_overdue_ticks "
        "late_fires pass_ticks schedules=all ticks tick_counts schedule_versions=versions"
    ),
    "signals": "signals=after last_signals=newest raise_signal=raise_",
    "snapshots": (
        "snapshot_of=of last_snapshot=last pages_of=of_job pages_at=at places segment_ends "
        "payloads segments_in_use drop_unused_payloads"
    ),
    "sources": (
        "ensure_sources=ensure sources=all pause_source=pause resume_source=resume hold "
        "unhold holds health recover_source=recover covered"
    ),
    "undos": (
        "undo_changes=changes changed_since is_undoing begin_undo=begin undo_batch=undo "
        "end_undo=end"
    ),
    "upkeep": "prune convert_sentences check note_restored",
    "workers": (
        "register beat bury bury_if_expired sign_off expired_workers=expired workers=all "
        "still_owned announce worker_codes=codes halted jobs_of"
    ),
}


def old_verb(store: Store, name: str) -> Any:
    """What was found under this name on the store itself."""
    for noun, verbs in OLD_VERBS.items():
        for verb in verbs.split():
            old, _, new = verb.partition("=")
            if old == name:
                return getattr(getattr(store, noun), new or old)
    return getattr(store, name)
