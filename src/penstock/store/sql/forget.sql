-- What is to be found and erased of one key of one source. `replace(…) <> …` is how both databases look inside of a text.

-- name: records_to_forget
-- Records that this source has written, now or in an earlier version.
SELECT id, collection, is_removed FROM penstock.record AS r
WHERE r.key = :key AND (r.source_id = :source_id OR EXISTS (
  SELECT 1 FROM penstock.record_version AS v WHERE v.record_id = r.id AND v.source_id = :source_id
));

-- name: snapshots_of_record
SELECT snapshot_id FROM penstock.record WHERE id = :id
UNION SELECT snapshot_id FROM penstock.record_version WHERE record_id = :id;

-- name: count_versions
SELECT count(*) FROM penstock.record_version WHERE record_id = :id;

-- name: staged_to_forget
SELECT run_id, collection, snapshot_id FROM penstock.staged WHERE key = :key AND source_id = :source_id;

-- name: rejects_to_forget
SELECT id, key, item, snapshot_id FROM penstock.reject
WHERE source_id = :source_id AND (key = :key OR replace(item, :spelling, '') <> item OR replace(reason, :spelling, '') <> reason);

-- name: jobs_to_forget
SELECT j.id, j.key, j.state, j.run_id, i.item, i.snapshot_id FROM penstock.job AS j
JOIN penstock.job_item AS i ON i.job_id = j.id
WHERE j.source_id = :source_id AND (j.key = :key OR replace(j.key, :spelling, '') <> j.key OR replace(i.item, :spelling, '') <> i.item);

-- name: snapshots_of_forgotten_job
SELECT id FROM penstock.snapshot WHERE job_id = :id;

-- name: snapshot_to_forget
SELECT s.url, s.hash, r.source_id FROM penstock.snapshot AS s LEFT JOIN penstock.run AS r ON r.id = s.run_id WHERE s.id = :id;

-- name: snapshots_with_hash
SELECT id, url FROM penstock.snapshot WHERE hash = :hash;

-- name: log_lines_to_forget
SELECT id, text FROM penstock.log_line WHERE source_id = :source_id AND replace(text, :spelling, '') <> text;

-- name: events_to_forget
SELECT id, data, detail FROM penstock.event
WHERE (source_id = :source_id OR source_id IS NULL)
  AND (replace(data, :spelling, '') <> data OR replace(detail, :spelling, '') <> detail);

-- name: active_replays_of
SELECT id FROM penstock.run WHERE source_id = :source_id AND kind = 'replay' AND state IN ('queued', 'running', 'paused');

-- name: failures_to_erase
SELECT f.job_id, f.error, f.traceback, f.cause, f.notes FROM penstock.job_failure AS f
JOIN penstock.job AS j ON j.id = f.job_id
WHERE j.source_id = :source_id AND (replace(f.error, :spelling, '') <> f.error OR replace(f.traceback, :spelling, '') <> f.traceback
  OR replace(f.cause, :spelling, '') <> f.cause OR replace(f.notes, :spelling, '') <> f.notes);

-- name: erase_failures
UPDATE penstock.job_failure SET error = :first, traceback = :second, cause = :third, notes = :fourth WHERE job_id = :id;

-- name: runs_to_erase
SELECT id, reason, end_reason FROM penstock.run
WHERE source_id = :source_id AND (replace(reason, :spelling, '') <> reason OR replace(end_reason, :spelling, '') <> end_reason);

-- name: erase_runs
UPDATE penstock.run SET reason = :first, end_reason = :second WHERE id = :id;

-- name: signals_to_erase
SELECT id, data FROM penstock.signal WHERE source_id = :source_id AND replace(data, :spelling, '') <> data;

-- name: erase_signals
UPDATE penstock.signal SET data = :first WHERE id = :id;

-- name: deliveries_to_erase
SELECT id, body, error FROM penstock.outbox
WHERE replace(body, :spelling, '') <> body OR replace(error, :spelling, '') <> error;

-- name: erase_deliveries
UPDATE penstock.outbox SET body = :first, error = :second WHERE id = :id;

-- name: alerts_to_erase
SELECT id, summary, cause, finding, evidence FROM penstock.alert
WHERE source_id IN (:source_id, 0)
  AND (replace(summary, :spelling, '') <> summary OR replace(cause, :spelling, '') <> cause
    OR replace(finding, :spelling, '') <> finding OR replace(evidence, :spelling, '') <> evidence);

-- name: erase_alerts
UPDATE penstock.alert SET summary = :first, cause = :second, finding = :third, evidence = :fourth WHERE id = :id;

-- name: answers_to_erase
SELECT id, answer FROM penstock.idempotency_key WHERE replace(answer, :spelling, '') <> answer;

-- name: erase_answers
UPDATE penstock.idempotency_key SET answer = :first WHERE id = :id;

-- name: requests_to_erase
SELECT id, params, reason, error FROM penstock.inbox
WHERE replace(params || reason || error, :spelling, '') <> params || reason || error;

-- name: erase_requests
UPDATE penstock.inbox SET params = :first, reason = :second, error = :third WHERE id = :id;

-- name: forget_record
DELETE FROM penstock.record WHERE id = :id;

-- name: forget_versions
DELETE FROM penstock.record_version WHERE record_id = :id;

-- name: forget_staged
DELETE FROM penstock.staged WHERE run_id = :run_id AND collection = :collection AND key = :key;

-- name: forget_reject
DELETE FROM penstock.reject WHERE id = :id;

-- name: forget_log_line
DELETE FROM penstock.log_line WHERE id = :id;

-- name: forget_snapshot
DELETE FROM penstock.snapshot WHERE id = :id;

-- name: forget_pins
DELETE FROM penstock.alert_pin WHERE snapshot_id = :id;

-- name: forget_payload
DELETE FROM penstock.payload WHERE hash = :hash;

-- name: forget_page
DELETE FROM penstock.page WHERE source_id = :source_id AND url = :url;

-- name: erase_event
UPDATE penstock.event SET data = :data, detail = :detail WHERE id = :id;

-- name: last_event_of_kind
SELECT max(id) FROM penstock.event WHERE kind = :kind;

-- name: add_tombstone
INSERT INTO penstock.tombstone (event_id, act_id, sealed, erased) VALUES (:event_id, :act_id, :sealed, :erased);

-- name: add_erasure
INSERT INTO penstock.erasure (act_id, source_id, at) VALUES (:act_id, :source_id, :now);
