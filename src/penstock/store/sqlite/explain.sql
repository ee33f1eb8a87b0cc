-- name: worker_loads
-- Who is alive, and how much of it is taken.
SELECT json_group_array(json_object(
  'id', w.id, 'slots', w.slots, 'admits', w.admits, 'scope', w.scope,
  'running', coalesce(l.running, 0), 'cpu', coalesce(l.cpu, 0.0), 'memory_mb', coalesce(l.memory_mb, 0.0)))
FROM (SELECT id, slots, admits, scope FROM worker WHERE lease_expires_at > :now ORDER BY started_at, id) AS w
LEFT JOIN (
  SELECT j.worker, count(*) AS running, sum(g.cpu) AS cpu, sum(g.memory_mb) AS memory_mb
  FROM job AS j INDEXED BY job_running
  CROSS JOIN run_stage AS g ON g.run_id = j.run_id AND g.stage = j.stage
  WHERE j.state = 'running' GROUP BY j.worker
) AS l ON l.worker = w.id;

-- name: job_needs
SELECT j.source_id, g.cpu, g.memory_mb, j.rank FROM job AS j
JOIN run_stage AS g ON g.run_id = j.run_id AND g.stage = j.stage WHERE j.id = :id;

-- name: first_queued
SELECT h.id FROM (
  SELECT (
    SELECT job.id FROM job WHERE job.run_id = g.run_id AND job.stage = g.stage AND job.state = 'queued' ORDER BY job.rank LIMIT 1
  ) AS id, r.state IN ('queued', 'running') AS is_active
  FROM run AS r JOIN run_stage AS g ON g.run_id = r.id
  WHERE r.state IN ('draft', 'queued', 'running', 'paused') AND g.queued > 0
    AND (:run_id IS NULL OR r.id = :run_id) AND (:source_id IS NULL OR r.source_id = :source_id)
) AS h
JOIN job ON job.id = h.id ORDER BY h.is_active DESC, job.rank, job.id LIMIT 1;

-- name: first_waiting
SELECT j.id FROM job AS j INDEXED BY job_waiting
WHERE j.state = 'waiting' AND (:run_id IS NULL OR j.run_id = :run_id) AND (:source_id IS NULL OR j.source_id = :source_id)
  AND EXISTS (SELECT 1 FROM run WHERE run.id = j.run_id AND run.state IN ('draft', 'queued', 'running', 'paused'))
ORDER BY j.due_at LIMIT 1;

-- name: first_held
SELECT j.id FROM job AS j INDEXED BY job_held
WHERE j.state = 'held' AND (:run_id IS NULL OR j.run_id = :run_id) AND (:source_id IS NULL OR j.source_id = :source_id)
  AND EXISTS (SELECT 1 FROM run WHERE run.id = j.run_id AND run.state IN ('draft', 'queued', 'running', 'paused'))
ORDER BY j.at LIMIT 1;

-- name: first_running
SELECT j.id FROM job AS j INDEXED BY job_running
WHERE j.state = 'running' AND (:run_id IS NULL OR j.run_id = :run_id) AND (:source_id IS NULL OR j.source_id = :source_id)
ORDER BY j.at LIMIT 1;

-- name: jobs_before
SELECT count(*) FROM (
  SELECT 1 FROM job
  WHERE run_id = :run_id AND stage = :stage AND state = 'queued' AND (rank < :rank OR (rank = :rank AND id < :id)) LIMIT :limit
);

-- name: children_of
-- A job's children came after it and are of its run; nothing leads from it to them.
SELECT json_group_array(json_array(stage, state, n)) FROM (
  SELECT j.stage, j.state, count(*) AS n FROM job AS j JOIN job_item AS i ON i.job_id = j.id
  WHERE j.run_id = :run_id AND i.parent_id = :id GROUP BY j.stage, j.state ORDER BY j.stage, j.state
);

-- name: first_children_of
SELECT json_group_array(id) FROM (
  SELECT j.id FROM job AS j JOIN job_item AS i ON i.job_id = j.id
  WHERE j.run_id = :run_id AND i.parent_id = :id ORDER BY j.id LIMIT :limit
);

-- name: snapshots_of_job
SELECT json_group_array(json_object('id', id, 'url', url, 'status', status, 'fetched_at', fetched_at, 'hash', hash)) FROM (
  SELECT id, url, status, fetched_at, hash FROM snapshot WHERE job_id = :id ORDER BY id LIMIT :limit
);

-- name: records_of_job
SELECT json_group_array(json_array(collection, key)) FROM (
  SELECT r.collection, r.key FROM snapshot AS s JOIN record AS r ON r.snapshot_id = s.id
  WHERE s.job_id = :id ORDER BY r.collection, r.key LIMIT :limit
);

-- name: job_whereabouts
SELECT json_object('returns_to', j.returns_to, 'returns_due_at', j.returns_due_at, 'parent_id', i.parent_id, 'snapshot_id', i.snapshot_id)
FROM job AS j LEFT JOIN job_item AS i ON i.job_id = j.id WHERE j.id = :id;

-- name: startable_runs
SELECT json_group_array(id) FROM run WHERE state IN ('queued', 'running', 'paused');
