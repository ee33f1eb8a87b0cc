-- name: move_position_if
-- No row changed means that somebody else has summed meanwhile: the caller drops its sums.
INSERT INTO penstock.rollup_position (id, version, line, holes, memory, at) VALUES (1, 1, :line, :holes, :memory, :now)
ON CONFLICT (id) DO UPDATE
SET version = rollup_position.version + 1, line = :line, holes = :holes, memory = :memory, at = :now
WHERE rollup_position.version = :version;

-- name: drop_lost_attempts
-- Of attempts that started long ago: those that are not running any more, whose end was never written.
DELETE FROM penstock.open_attempt WHERE (job_id, attempt) IN (
  SELECT o.job_id, o.attempt FROM penstock.open_attempt AS o
  WHERE o.at < :before AND (
    SELECT job.attempt FROM penstock.job WHERE job.id = o.job_id AND job.state = 'running'
  ) IS DISTINCT FROM o.attempt
  LIMIT :limit
);

-- name: drop_lost_releases
-- Of attempts that were released long ago: those whose job does not wait for its next start any more.
DELETE FROM penstock.released_attempt WHERE (job_id, attempt) IN (
  SELECT o.job_id, o.attempt FROM penstock.released_attempt AS o
  WHERE o.at < :before AND (
    SELECT job.attempt FROM penstock.job WHERE job.id = o.job_id AND job.state IN ('queued', 'waiting', 'held')
  ) IS DISTINCT FROM o.attempt
  LIMIT :limit
);

-- name: first_run_at
SELECT created_at FROM penstock.run ORDER BY id LIMIT 1;

-- name: last_event_id
SELECT max(id) FROM penstock.event;
