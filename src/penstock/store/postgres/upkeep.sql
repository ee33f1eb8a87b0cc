-- name: drop_jobs
WITH gone AS (
  DELETE FROM penstock.job WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) RETURNING run_id, stage, key
)
DELETE FROM penstock.job_key WHERE ctid = ANY (ARRAY(
  SELECT k.ctid FROM gone AS g
  CROSS JOIN LATERAL (
    SELECT ctid FROM penstock.job_key WHERE run_id = g.run_id AND stage = g.stage AND key = g.key OFFSET 0
  ) AS k
));

-- name: drop_items
DELETE FROM penstock.job_item WHERE job_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: drop_failures
DELETE FROM penstock.job_failure WHERE job_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: drop_versions
-- Counted from when it was superseded: the version before today's change may be years old and is still wanted.
DELETE FROM penstock.record_version WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM penstock.record_version WHERE superseded_at < %(before)s
  ORDER BY superseded_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
));

-- name: next_segments
SELECT coalesce(json_agg(segment), '[]')::text FROM (
  SELECT DISTINCT segment FROM penstock.payload WHERE segment > %(after)s ORDER BY segment LIMIT %(limit)s
) AS found;

-- name: lock_payloads
-- A turn that found its payload known has not said yet that it refers to it: wait for it, and let none begin.
LOCK TABLE penstock.payload IN SHARE ROW EXCLUSIVE MODE;

-- name: drop_unused_payloads
-- Whole segments only: their files are what takes the space.
DELETE FROM penstock.payload WHERE segment IN (
  SELECT value FROM jsonb_array_elements_text(%(segments)s::jsonb)
  WHERE NOT EXISTS (
    SELECT 1 FROM penstock.payload AS p JOIN penstock.snapshot AS s ON s.hash = p.hash WHERE p.segment = value
  )
);

-- name: segments_in_use
SELECT coalesce(json_agg(value), '[]')::text FROM jsonb_array_elements_text(%(segments)s::jsonb)
WHERE EXISTS (SELECT 1 FROM penstock.payload WHERE segment = value);

-- name: miscounted_stages
-- Counters that do not equal the rows they count.
SELECT g.run_id, g.stage FROM penstock.stage_count AS g
LEFT JOIN (
  SELECT run_id, stage,
    count(*) FILTER (WHERE state = 'queued') AS queued, count(*) FILTER (WHERE state = 'running') AS running,
    count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'held') AS held,
    count(*) FILTER (WHERE state = 'quarantined') AS quarantined
  FROM penstock.job GROUP BY run_id, stage
) AS c ON c.run_id = g.run_id AND c.stage = g.stage
WHERE g.queued <> coalesce(c.queued, 0) OR g.running <> coalesce(c.running, 0)
  OR g.waiting <> coalesce(c.waiting, 0) OR g.held <> coalesce(c.held, 0)
  OR g.quarantined <> coalesce(c.quarantined, 0);

-- name: miscounted_collections
SELECT coalesce(c.name, r.collection) FROM (
  SELECT name, sum(records) AS records FROM penstock.collection GROUP BY name
) AS c
FULL JOIN (SELECT collection, count(*) AS records FROM penstock.record WHERE NOT is_removed GROUP BY collection) AS r ON r.collection = c.name
WHERE coalesce(c.records, 0) <> coalesce(r.records, 0);

-- name: ended_runs_with_open_jobs
-- Not cancelled ones: their jobs are swept in batches.
SELECT r.id FROM penstock.run AS r JOIN penstock.stage_count AS g ON g.run_id = r.id
WHERE r.state IN ('completed', 'partial', 'failed')
GROUP BY r.id HAVING sum(g.queued + g.running + g.waiting + g.held) > 0;

-- name: active_runs_without_open_jobs
SELECT r.id FROM penstock.run AS r JOIN penstock.stage_count AS g ON g.run_id = r.id
WHERE r.state IN ('queued', 'running', 'paused')
GROUP BY r.id HAVING sum(g.queued + g.running + g.waiting + g.held) = 0;

-- name: overview
-- What is open is that of active runs, and quarantine is counted along the index that holds nothing else: neither grows
-- with what has ended.
SELECT json_build_object(
  'queued', coalesce(sum(g.queued), 0)::bigint, 'running', coalesce(sum(g.running), 0)::bigint,
  'waiting', coalesce(sum(g.waiting), 0)::bigint,
  'quarantined', (
    SELECT coalesce(sum(q.jobs), 0)::bigint
    FROM (SELECT run_id, count(*) AS jobs FROM penstock.job WHERE state = 'quarantined' GROUP BY run_id) AS q
    CROSS JOIN LATERAL (SELECT kind, state FROM penstock.run WHERE id = q.run_id OFFSET 0) AS o
    WHERE o.state NOT IN ('cancelled', 'draft') AND o.kind NOT IN ('replay', 'probe')
  ),
  'active_runs', (SELECT count(*) FROM penstock.run WHERE state IN ('queued', 'running', 'paused')),
  'paused_sources', (SELECT count(*) FROM penstock.source WHERE paused_at IS NOT NULL),
  'workers', (SELECT count(*) FROM penstock.worker WHERE lease_expires_at > %(now)s),
  'records', (SELECT coalesce(sum(records), 0)::bigint FROM penstock.collection),
  'next_due_at', (SELECT min(due_at) FROM penstock.job WHERE state = 'waiting'))::text
FROM (SELECT id FROM penstock.run WHERE state IN ('queued', 'running', 'paused') OFFSET 0) AS r
CROSS JOIN LATERAL (
  SELECT sum(queued) AS queued, sum(running) AS running, sum(waiting) AS waiting
  FROM penstock.stage_count WHERE run_id = r.id OFFSET 0
) AS g;

-- name: size_bytes
-- Tables with their indexes; 0 before there are any.
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c
WHERE c.relkind = 'r'
  AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('penstock.job'));
