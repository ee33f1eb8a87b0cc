-- Only here: SQLite has one writer at a time, and nothing to lock or to fold.

-- name: lock_lanes
SELECT id FROM penstock.source WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE;

-- name: lock_runs
-- Answers how many tallies each has that are not in its counters yet.
SELECT r.id, (SELECT count(*) FROM penstock.tally AS t WHERE t.run_id = r.id AND t.id > r.folded_id)
FROM (SELECT id, folded_id FROM penstock.run WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE) AS r;

-- name: fold
-- Under the lock of their runs.
WITH gone AS (
  DELETE FROM penstock.tally AS t USING penstock.run AS r
  WHERE r.id = ANY (%(ids)s::bigint[]) AND t.run_id = r.id AND t.id > r.folded_id
  RETURNING t.*
), stages AS (
  UPDATE penstock.run_stage AS g
  SET queued = g.queued + t.queued, running = g.running + t.running, waiting = g.waiting + t.waiting,
    held = g.held + t.held, succeeded = g.succeeded + t.succeeded, skipped = g.skipped + t.skipped,
    quarantined = g.quarantined + t.quarantined, cancelled = g.cancelled + t.cancelled
  FROM (
    SELECT run_id, stage, sum(queued) AS queued, sum(running) AS running, sum(waiting) AS waiting, sum(held) AS held,
      sum(succeeded) AS succeeded, sum(skipped) AS skipped, sum(quarantined) AS quarantined, sum(cancelled) AS cancelled
    FROM gone WHERE stage <> '' GROUP BY run_id, stage
  ) AS t
  WHERE g.run_id = t.run_id AND g.stage = t.stage
)
UPDATE penstock.run AS r
SET inserted = r.inserted + t.inserted, updated = r.updated + t.updated, unchanged = r.unchanged + t.unchanged,
  rejected = r.rejected + t.rejected, retried = r.retried + t.retried, throttled = r.throttled + t.throttled,
  folded_id = t.last_id
FROM (
  SELECT run_id, sum(inserted) AS inserted, sum(updated) AS updated, sum(unchanged) AS unchanged,
    sum(rejected) AS rejected, sum(retried) AS retried, sum(throttled) AS throttled, max(id) AS last_id
  FROM gone GROUP BY run_id
) AS t
WHERE r.id = t.run_id;

-- name: fold_collections
WITH gone AS (
  DELETE FROM penstock.collection WHERE id IN (
    SELECT id FROM penstock.collection ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
  ) RETURNING name, records
)
INSERT INTO penstock.collection (name, records) SELECT name, sum(records) FROM gone GROUP BY name;

-- name: new_job_ids
SELECT coalesce(json_agg(nextval('penstock.job_id_seq')), '[]')::text FROM generate_series(1, %(count)s);
