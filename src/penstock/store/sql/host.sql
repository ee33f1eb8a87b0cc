-- name: set_host_hours
INSERT INTO penstock.host_hours (host, definition) VALUES (:host, :definition)
ON CONFLICT (host) DO UPDATE SET definition = excluded.definition;

-- name: drop_host_hours
DELETE FROM penstock.host_hours WHERE host = :host;

-- name: host_wait_of
SELECT w.host FROM penstock.host_wait AS w JOIN penstock.job ON job.id = w.job_id
WHERE w.job_id = :id AND job.state = 'waiting' AND job.due_at = w.due_at;
