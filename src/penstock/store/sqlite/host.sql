-- name: note_host_waits
-- From the row: a job that still has this due time waits for just this.
INSERT INTO host_wait (job_id, host, due_at)
SELECT job.id, w.value ->> 1, job.due_at FROM jsonb_each(:waits) AS w CROSS JOIN job NOT INDEXED ON job.id = w.value ->> 0
WHERE job.state = 'waiting'
ON CONFLICT (job_id) DO UPDATE SET host = excluded.host, due_at = excluded.due_at;

-- name: host_hours
SELECT json_group_object(host, definition) FROM host_hours;

-- name: put_off_for_host
SELECT json_group_array(json_array(id, run_id, stage)) FROM (
  SELECT job.id, job.run_id, job.stage
  FROM host_wait AS w CROSS JOIN job NOT INDEXED ON job.id = w.job_id
  WHERE w.host = :host AND job.state = 'waiting' AND job.due_at = w.due_at ORDER BY job.id LIMIT :limit
);

-- name: drop_host_waits
DELETE FROM host_wait WHERE job_id IN (SELECT job_id FROM host_wait WHERE due_at < :before ORDER BY due_at LIMIT :limit);
