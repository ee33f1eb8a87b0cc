-- name: unit_counts
SELECT json_group_object(run_id, json(units)) FROM (
  SELECT run_id, json_group_object(unit, json_object(
    'queued', queued, 'running', running, 'waiting', waiting, 'held', held,
    'succeeded', succeeded, 'skipped', skipped, 'quarantined', quarantined, 'cancelled', cancelled)) AS units
  FROM (
    SELECT g.run_id, g.unit, sum(g.queued) AS queued, sum(g.running) AS running, sum(g.waiting) AS waiting,
      sum(g.held) AS held, sum(g.succeeded) AS succeeded, sum(g.skipped) AS skipped,
      sum(g.quarantined) AS quarantined, sum(g.cancelled) AS cancelled
    FROM jsonb_each(:ids) AS w CROSS JOIN run_stage AS g ON g.run_id = w.value
    GROUP BY g.run_id, g.unit
  )
  GROUP BY run_id
);

-- name: failures_by_kind
SELECT json_group_object(kind, n) FROM (
  SELECT coalesce(f.kind, 'unknown') AS kind, count(*) AS n
  FROM job AS j INDEXED BY job_quarantined LEFT JOIN job_failure AS f ON f.job_id = j.id
  WHERE j.run_id = :run_id AND j.state = 'quarantined'
  GROUP BY 1 ORDER BY n DESC, 1
);

-- name: failures_by_cause
-- What is in quarantine of a run, cause by cause, each with its first job.
SELECT json_group_array(json_object(
  'cause', c.cause, 'jobs', c.jobs, 'job_id', c.job_id, 'kind', coalesce(f.kind, 'unknown'),
  'error', coalesce(f.error, '')))
FROM (
  SELECT coalesce(e.cause, '') AS cause, count(*) AS jobs, min(j.id) AS job_id
  FROM job AS j INDEXED BY job_quarantined LEFT JOIN job_failure AS e ON e.job_id = j.id
  WHERE j.run_id = :run_id AND j.state = 'quarantined' AND (:stage IS NULL OR j.stage = :stage)
  GROUP BY 1 ORDER BY jobs DESC, job_id LIMIT :limit
) AS c LEFT JOIN job_failure AS f ON f.job_id = c.job_id;

-- name: runs_made_of
SELECT json_group_array(id) FROM (SELECT id FROM run WHERE of_run_id = :run_id ORDER BY id LIMIT 50);

-- name: unaccounted_runs
-- What was enqueued is not what became of it.
SELECT r.id FROM run AS r JOIN run_stage AS g ON g.run_id = r.id
WHERE r.is_accounted
GROUP BY r.id
HAVING r.pages_added <> sum(CASE WHEN g.unit = 'page'
    THEN g.queued + g.running + g.waiting + g.held + g.succeeded + g.skipped + g.quarantined + g.cancelled ELSE 0 END)
  OR r.candidates_added - (r.candidates_accepted + r.candidates_rejected + r.candidates_duplicate + r.candidates_passed
      + r.candidates_dropped) <> sum(CASE WHEN g.unit = 'candidate'
    THEN g.queued + g.running + g.waiting + g.held + g.skipped + g.quarantined + g.cancelled ELSE 0 END);
