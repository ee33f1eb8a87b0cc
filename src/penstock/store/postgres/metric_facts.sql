-- name: metric_stages
-- What is open of active runs, by source and stage, and since when the first job of each has been queued.
SELECT coalesce(json_agg(json_build_array(key, stage, queued, running, waiting, held, oldest_at)), '[]')::text FROM (
  SELECT s.key, g.stage, sum(g.queued)::bigint AS queued, sum(g.running)::bigint AS running,
    sum(g.waiting)::bigint AS waiting, sum(g.held)::bigint AS held, min(g.oldest_at) AS oldest_at
  FROM (SELECT id, source_id FROM penstock.run WHERE state IN ('queued', 'running', 'paused') OFFSET 0) AS r
  CROSS JOIN LATERAL (
    SELECT c.stage, c.queued, c.running, c.waiting, c.held, (
      SELECT at FROM penstock.job
      WHERE job.run_id = r.id AND job.stage = c.stage AND job.state = 'queued' ORDER BY rank LIMIT 1
    ) AS oldest_at
    FROM penstock.stage_count AS c WHERE c.run_id = r.id OFFSET 0
  ) AS g
  JOIN penstock.source AS s ON s.id = r.source_id GROUP BY s.key, g.stage
) AS found;

-- name: metric_quarantined
-- Along the index that holds nothing else.
SELECT coalesce(json_object_agg(key, jobs), '{}')::text FROM (
  SELECT s.key, sum(q.jobs)::bigint AS jobs
  FROM (SELECT run_id, count(*) AS jobs FROM penstock.job WHERE state = 'quarantined' GROUP BY run_id) AS q
  CROSS JOIN LATERAL (SELECT source_id, kind, state FROM penstock.run WHERE id = q.run_id OFFSET 0) AS o
  JOIN penstock.source AS s ON s.id = o.source_id
  WHERE o.state NOT IN ('cancelled', 'draft') AND o.kind NOT IN ('replay', 'probe') GROUP BY s.key
) AS found;

-- name: metric_due
SELECT coalesce(json_object_agg(key, due_at), '{}')::text FROM (
  SELECT s.key, min(c.next_due_at) AS due_at FROM penstock.schedule AS c JOIN penstock.source AS s ON s.id = c.source_id
  WHERE c.next_due_at IS NOT NULL GROUP BY s.key
) AS found;

-- name: metric_breaches
SELECT coalesce(json_agg(json_build_array(key, rule, breaches)), '[]')::text FROM (
  SELECT s.key, b.rule, count(*) AS breaches FROM penstock.breach AS b JOIN penstock.source AS s ON s.id = b.source_id
  WHERE b.ended_at IS NULL GROUP BY s.key, b.rule
) AS found;

-- name: metric_alerts
SELECT coalesce(json_agg(json_build_array(severity, state, alerts)), '[]')::text FROM (
  SELECT severity, state, count(*) AS alerts FROM penstock.alert WHERE state <> 'resolved' GROUP BY severity, state
) AS found;

-- name: metric_deliveries
SELECT json_build_array(count(*) FILTER (WHERE due_at IS NOT NULL), count(*) FILTER (WHERE due_at IS NULL))::text
FROM penstock.outbox WHERE delivered_at IS NULL;
