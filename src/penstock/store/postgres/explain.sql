-- name: worker_loads
-- Who is alive, and how much of it is taken.
SELECT coalesce(json_agg(json_build_object(
  'id', w.id, 'slots', w.slots, 'admits', w.admits, 'scope', w.scope,
  'running', coalesce(l.running, 0), 'cpu', coalesce(l.cpu, 0.0), 'memory_mb', coalesce(l.memory_mb, 0.0)) ORDER BY w.started_at, w.id), '[]')::text
FROM penstock.worker AS w
LEFT JOIN (
  SELECT j.worker, count(*) AS running, sum(g.cpu) AS cpu, sum(g.memory_mb) AS memory_mb
  FROM penstock.job AS j
  JOIN penstock.run_stage AS g ON g.run_id = j.run_id AND g.stage = j.stage
  WHERE j.state = 'running' GROUP BY j.worker
) AS l ON l.worker = w.id
WHERE w.lease_expires_at > %(now)s;

-- name: job_needs
SELECT j.source_id, g.cpu, g.memory_mb, j.rank
FROM (SELECT source_id, run_id, stage, rank FROM penstock.job WHERE id = %(id)s OFFSET 0) AS j
JOIN penstock.run_stage AS g ON g.run_id = j.run_id AND g.stage = j.stage;

-- name: first_queued
SELECT h.id FROM penstock.run AS r
JOIN penstock.stage_count AS g ON g.run_id = r.id
CROSS JOIN LATERAL (
  SELECT job.id, job.rank FROM penstock.job
  WHERE job.run_id = r.id AND job.stage = g.stage AND job.state = 'queued' ORDER BY job.rank, job.id LIMIT 1
) AS h
WHERE r.state IN ('draft', 'queued', 'running', 'paused') AND g.queued > 0
  AND (%(run_id)s::bigint IS NULL OR r.id = %(run_id)s) AND (%(source_id)s::bigint IS NULL OR r.source_id = %(source_id)s)
ORDER BY r.state IN ('queued', 'running') DESC, h.rank, h.id LIMIT 1;

-- name: first_waiting
SELECT j.id FROM penstock.job AS j
WHERE j.state = 'waiting' AND (%(run_id)s::bigint IS NULL OR j.run_id = %(run_id)s) AND (%(source_id)s::bigint IS NULL OR j.source_id = %(source_id)s)
  AND EXISTS (SELECT 1 FROM penstock.run WHERE run.id = j.run_id AND run.state IN ('draft', 'queued', 'running', 'paused'))
ORDER BY j.due_at LIMIT 1;

-- name: first_held
SELECT j.id FROM penstock.job AS j
WHERE j.state = 'held' AND (%(run_id)s::bigint IS NULL OR j.run_id = %(run_id)s) AND (%(source_id)s::bigint IS NULL OR j.source_id = %(source_id)s)
  AND EXISTS (SELECT 1 FROM penstock.run WHERE run.id = j.run_id AND run.state IN ('draft', 'queued', 'running', 'paused'))
ORDER BY j.at LIMIT 1;

-- name: first_running
SELECT j.id FROM penstock.job AS j
WHERE j.state = 'running' AND (%(run_id)s::bigint IS NULL OR j.run_id = %(run_id)s) AND (%(source_id)s::bigint IS NULL OR j.source_id = %(source_id)s)
ORDER BY j.at LIMIT 1;

-- name: jobs_before
SELECT count(*) FROM (
  SELECT 1 FROM penstock.job
  WHERE run_id = %(run_id)s AND stage = %(stage)s AND state = 'queued' AND (rank, id) < (%(rank)s, %(id)s) LIMIT %(limit)s
) AS b;

-- name: children_of
-- A job's children came after it and are of its run; nothing leads from it to them. The keys of the run are asked for
-- all at once: one by one takes twice as long.
SELECT coalesce(json_agg(json_build_array(c.stage, c.state, c.n) ORDER BY c.stage, c.state), '[]')::text FROM (
  SELECT stage, state, count(*) AS n FROM penstock.job
  WHERE id = ANY (ARRAY(
    SELECT job_id FROM penstock.job_item
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM penstock.job_key WHERE run_id = %(run_id)s AND job_id > %(id)s))
      AND parent_id = %(id)s
  ))
  GROUP BY stage, state
) AS c;

-- name: first_children_of
SELECT coalesce(json_agg(c.job_id ORDER BY c.job_id), '[]')::text FROM (
  SELECT job_id FROM penstock.job_item
  WHERE job_id = ANY (ARRAY(SELECT job_id FROM penstock.job_key WHERE run_id = %(run_id)s AND job_id > %(id)s))
    AND parent_id = %(id)s
  ORDER BY job_id LIMIT %(limit)s
) AS c;

-- name: snapshots_of_job
SELECT coalesce(json_agg(json_build_object('id', s.id, 'url', s.url, 'status', s.status, 'fetched_at', s.fetched_at, 'hash', s.hash) ORDER BY s.id), '[]')::text
FROM (
  SELECT id, url, status, fetched_at, hash
  FROM (SELECT id, url, status, fetched_at, hash FROM penstock.snapshot WHERE job_id = %(id)s OFFSET 0) AS own
  ORDER BY id LIMIT %(limit)s
) AS s;

-- name: records_of_job
SELECT coalesce(json_agg(json_build_array(f.collection, f.key) ORDER BY f.collection, f.key), '[]')::text FROM (
  SELECT r.collection, r.key FROM (SELECT id FROM penstock.snapshot WHERE job_id = %(id)s OFFSET 0) AS s
  CROSS JOIN LATERAL (SELECT collection, key FROM penstock.record WHERE snapshot_id = s.id OFFSET 0) AS r
  ORDER BY r.collection, r.key LIMIT %(limit)s
) AS f;

-- name: job_whereabouts
SELECT json_build_object('returns_to', j.returns_to, 'returns_due_at', j.returns_due_at, 'parent_id', i.parent_id, 'snapshot_id', i.snapshot_id)::text
FROM penstock.job AS j LEFT JOIN penstock.job_item AS i ON i.job_id = j.id WHERE j.id = %(id)s;

-- name: startable_runs
SELECT coalesce(json_agg(id), '[]')::text FROM penstock.run WHERE state IN ('queued', 'running', 'paused');
