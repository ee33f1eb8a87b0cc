-- name: has_to_deliver
SELECT EXISTS (SELECT 1 FROM penstock.signal WHERE is_open) OR EXISTS (
  SELECT 1 FROM penstock.delivery WHERE state IN ('queued', 'waiting') AND state = 'queued' AND (reason = '' OR waits_for_run_id IS NOT NULL)
);

-- name: end_delivery_if_queued
UPDATE penstock.delivery SET state = :state, reason = :reason, waits_for_run_id = NULL, at = :now
WHERE signal_id = :signal_id AND source_id = :source_id AND schedule = :schedule AND state = 'queued';

-- name: set_run_of_deliveries
UPDATE penstock.delivery SET run_id = :run_id
WHERE source_id = :source_id AND schedule = :schedule AND (signal_id = :signal_id OR joins = :signal_id);

-- name: note_start_of_schedule
UPDATE penstock.schedule SET last_due_at = :due_at, last_run_id = :run_id
WHERE source_id = :source_id AND name = :schedule;

-- name: standing_count
SELECT count(*) FROM penstock.delivery WHERE source_id = :source_id AND state IN ('queued', 'waiting');

-- name: drop_deliveries
DELETE FROM penstock.delivery WHERE (signal_id, source_id, schedule) IN (
  SELECT signal_id, source_id, schedule FROM penstock.delivery
  WHERE signal_id < coalesce((SELECT min(id) FROM penstock.signal), 9223372036854775807) AND at < :before ORDER BY signal_id LIMIT :limit
);
