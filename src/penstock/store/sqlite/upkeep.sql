-- name: drop_jobs
DELETE FROM job WHERE id IN (SELECT value FROM jsonb_each(:ids));

-- name: drop_items
DELETE FROM job_item WHERE job_id IN (SELECT value FROM jsonb_each(:ids));

-- name: drop_failures
DELETE FROM job_failure WHERE job_id IN (SELECT value FROM jsonb_each(:ids));

-- name: drop_versions
-- Counted from when it was superseded: the version before today's change may be years old and is still wanted.
DELETE FROM record_version WHERE rowid IN (
  SELECT rowid FROM (SELECT rowid, superseded_at FROM record_version ORDER BY rowid LIMIT :limit) WHERE superseded_at < :before
);

-- name: next_segments
SELECT json_group_array(segment) FROM (
  SELECT DISTINCT segment FROM payload WHERE segment > :after ORDER BY segment LIMIT :limit
);

-- name: lock_payloads
-- Nothing to lock here: a transaction that writes has the file to itself.
SELECT 1;

-- name: drop_unused_payloads
-- Whole segments only: their files are what takes the space.
DELETE FROM payload WHERE segment IN (
  SELECT value FROM jsonb_each(:segments)
  WHERE NOT EXISTS (SELECT 1 FROM payload AS p JOIN snapshot AS s ON s.hash = p.hash WHERE p.segment = value)
);

-- name: segments_in_use
SELECT json_group_array(value) FROM jsonb_each(:segments)
WHERE EXISTS (SELECT 1 FROM payload WHERE segment = value);

-- name: miscounted_stages
-- Counters that do not equal the rows they count.
SELECT g.run_id, g.stage FROM run_stage AS g
LEFT JOIN (
  SELECT run_id, stage,
    sum(state = 'queued') AS queued, sum(state = 'running') AS running, sum(state = 'waiting') AS waiting,
    sum(state = 'held') AS held, sum(state = 'quarantined') AS quarantined
  FROM job GROUP BY run_id, stage
) AS c ON c.run_id = g.run_id AND c.stage = g.stage
WHERE g.queued <> coalesce(c.queued, 0) OR g.running <> coalesce(c.running, 0)
  OR g.waiting <> coalesce(c.waiting, 0) OR g.held <> coalesce(c.held, 0)
  OR g.quarantined <> coalesce(c.quarantined, 0);

-- name: miscounted_collections
SELECT coalesce(c.name, r.collection) FROM collection AS c
FULL JOIN (SELECT collection, count(*) AS records FROM record WHERE NOT is_removed GROUP BY collection) AS r ON r.collection = c.name
WHERE coalesce(c.records, 0) <> coalesce(r.records, 0);

-- name: ended_runs_with_open_jobs
-- Not cancelled ones: their jobs are swept in batches.
SELECT r.id FROM run AS r JOIN run_stage AS g ON g.run_id = r.id
WHERE r.state IN ('completed', 'partial', 'failed')
GROUP BY r.id HAVING sum(g.queued + g.running + g.waiting + g.held) > 0;

-- name: active_runs_without_open_jobs
SELECT r.id FROM run AS r JOIN run_stage AS g ON g.run_id = r.id
WHERE r.state IN ('queued', 'running', 'paused')
GROUP BY r.id HAVING sum(g.queued + g.running + g.waiting + g.held) = 0;

-- name: overview
-- What is open is that of active runs, and quarantine is counted along the index that holds nothing else: neither grows
-- with what has ended.
SELECT json_object(
  'queued', coalesce(sum(g.queued), 0), 'running', coalesce(sum(g.running), 0), 'waiting', coalesce(sum(g.waiting), 0),
  'quarantined', (
    SELECT coalesce(sum(q.jobs), 0)
    FROM (
      SELECT run_id, count(*) AS jobs FROM job INDEXED BY job_quarantined WHERE state = 'quarantined' GROUP BY run_id
    ) AS q
    CROSS JOIN run AS o ON o.id = q.run_id
    WHERE o.state NOT IN ('cancelled', 'draft') AND o.kind NOT IN ('replay', 'probe')
  ),
  'active_runs', (SELECT count(*) FROM run WHERE state IN ('queued', 'running', 'paused')),
  'paused_sources', (SELECT count(*) FROM source WHERE paused_at IS NOT NULL),
  'workers', (SELECT count(*) FROM worker WHERE lease_expires_at > :now),
  'records', (SELECT coalesce(sum(records), 0) FROM collection),
  'next_due_at', (SELECT min(due_at) FROM job WHERE state = 'waiting'))
FROM run INDEXED BY run_active CROSS JOIN run_stage AS g ON g.run_id = run.id
WHERE run.state IN ('queued', 'running', 'paused');

-- name: size_bytes
-- With what is in the log and not in the file yet.
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size();
