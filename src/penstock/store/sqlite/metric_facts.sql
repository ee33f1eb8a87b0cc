-- name: metric_stages
-- What is open of active runs, by source and stage, and since when the first job of each has been queued.
SELECT json_group_array(json_array(key, stage, queued, running, waiting, held, oldest_at)) FROM (
  SELECT s.key, g.stage, sum(g.queued) AS queued, sum(g.running) AS running, sum(g.waiting) AS waiting, sum(g.held) AS held,
    min((
      SELECT at FROM job WHERE job.run_id = g.run_id AND job.stage = g.stage AND job.state = 'queued' ORDER BY rank LIMIT 1
    )) AS oldest_at
  FROM run AS r INDEXED BY run_active
  CROSS JOIN run_stage AS g ON g.run_id = r.id
  CROSS JOIN source AS s ON s.id = r.source_id
  WHERE r.state IN ('queued', 'running', 'paused') GROUP BY s.key, g.stage
);

-- name: metric_quarantined
-- Along the index that holds nothing else.
SELECT json_group_object(key, jobs) FROM (
  SELECT s.key, sum(q.jobs) AS jobs
  FROM (SELECT run_id, count(*) AS jobs FROM job INDEXED BY job_quarantined WHERE state = 'quarantined' GROUP BY run_id) AS q
  CROSS JOIN run AS o ON o.id = q.run_id
  CROSS JOIN source AS s ON s.id = o.source_id
  WHERE o.state NOT IN ('cancelled', 'draft') AND o.kind NOT IN ('replay', 'probe') GROUP BY s.key
);

-- name: metric_due
SELECT json_group_object(key, due_at) FROM (
  SELECT s.key, min(c.next_due_at) AS due_at FROM schedule AS c CROSS JOIN source AS s ON s.id = c.source_id
  WHERE c.next_due_at IS NOT NULL GROUP BY s.key
);

-- name: metric_breaches
SELECT json_group_array(json_array(key, rule, breaches)) FROM (
  SELECT s.key, b.rule, count(*) AS breaches FROM breach AS b INDEXED BY breach_open CROSS JOIN source AS s ON s.id = b.source_id
  WHERE b.ended_at IS NULL GROUP BY s.key, b.rule
);

-- name: metric_alerts
SELECT json_group_array(json_array(severity, state, alerts)) FROM (
  SELECT severity, state, count(*) AS alerts FROM alert INDEXED BY alert_standing WHERE state <> 'resolved' GROUP BY severity, state
);

-- name: metric_deliveries
SELECT json_array(count(*) FILTER (WHERE due_at IS NOT NULL), count(*) FILTER (WHERE due_at IS NULL))
FROM outbox INDEXED BY outbox_undelivered WHERE delivered_at IS NULL;
