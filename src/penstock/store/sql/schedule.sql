-- name: replan
UPDATE penstock.schedule SET next_due_at = :next_due_at, look_at = :next_due_at
WHERE source_id = :source_id AND name = :schedule;

-- name: next_look_at
SELECT min(look_at) FROM penstock.schedule WHERE look_at IS NOT NULL;

-- name: has_overdue
-- Ticks that wait for their turn to be made up for: due, and looked at later.
SELECT 1 FROM penstock.schedule WHERE look_at > :now AND next_due_at <= :now LIMIT 1;

-- name: has_tick
SELECT 1 FROM penstock.tick WHERE source_id = :source_id AND schedule = :schedule AND due_at = :due_at;

-- name: set_tick_run
UPDATE penstock.tick SET run_id = :run_id WHERE source_id = :source_id AND schedule = :schedule AND due_at = :due_at;

-- name: pass_tick
UPDATE penstock.schedule SET next_due_at = :next_due_at, look_at = :next_due_at
WHERE source_id = :source_id AND name = :schedule;

-- name: note_fired
UPDATE penstock.schedule SET last_due_at = :due_at, last_run_id = :run_id
WHERE source_id = :source_id AND name = :schedule;

-- name: late_fires
SELECT count(*) FROM penstock.tick WHERE at > :since AND outcome = 'fired' AND at - due_at > :grace_s;

-- name: drop_ticks
DELETE FROM penstock.tick WHERE (source_id, schedule, due_at) IN (
  SELECT source_id, schedule, due_at FROM penstock.tick WHERE at < :before ORDER BY at LIMIT :limit
);

-- name: drop_breaches
DELETE FROM penstock.breach WHERE (source_id, rule, since) IN (
  SELECT source_id, rule, since FROM penstock.breach WHERE ended_at < :before ORDER BY since LIMIT :limit
);
