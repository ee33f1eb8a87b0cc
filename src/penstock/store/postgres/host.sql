-- name: note_host_waits
-- From the row: a job that still has this due time waits for just this.
INSERT INTO penstock.host_wait (job_id, host, due_at)
SELECT j.id, w ->> 1, j.due_at FROM jsonb_array_elements(%(waits)s::jsonb) AS w
CROSS JOIN LATERAL (
  SELECT id, due_at FROM penstock.job WHERE id = (w ->> 0)::bigint AND state || '' = 'waiting' OFFSET 0
) AS j
ORDER BY j.id
ON CONFLICT (job_id) DO UPDATE SET host = excluded.host, due_at = excluded.due_at;

-- name: host_hours
SELECT coalesce(json_object_agg(host, definition), '{}')::text FROM penstock.host_hours;

-- name: put_off_for_host
-- A job that somebody holds just now is moved by them.
WITH found AS MATERIALIZED (
  SELECT w.job_id, w.due_at FROM penstock.host_wait AS w
  CROSS JOIN LATERAL (
    SELECT 1 FROM penstock.job WHERE id = w.job_id AND state || '' = 'waiting' AND due_at = w.due_at OFFSET 0
  ) AS j
  WHERE w.host = %(host)s ORDER BY w.job_id LIMIT %(limit)s
)
SELECT coalesce(json_agg(json_build_array(j.id, j.run_id, j.stage)), '[]')::text FROM found
CROSS JOIN LATERAL (
  SELECT id, run_id, stage FROM penstock.job
  WHERE id = found.job_id AND state || '' = 'waiting' AND due_at = found.due_at OFFSET 0 FOR NO KEY UPDATE SKIP LOCKED
) AS j;

-- name: drop_host_waits
DELETE FROM penstock.host_wait WHERE job_id = ANY (ARRAY(
  SELECT job_id FROM penstock.host_wait WHERE due_at < %(before)s ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
));
