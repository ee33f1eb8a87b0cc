-- name: unit_counts
SELECT coalesce(json_object_agg(run_id, units), '{}')::text FROM (
  SELECT run_id, json_object_agg(unit, json_build_object(
    'queued', queued, 'running', running, 'waiting', waiting, 'held', held,
    'succeeded', succeeded, 'skipped', skipped, 'quarantined', quarantined, 'cancelled', cancelled)) AS units
  FROM (
    SELECT g.run_id, g.unit, sum(g.queued)::bigint AS queued, sum(g.running)::bigint AS running,
      sum(g.waiting)::bigint AS waiting, sum(g.held)::bigint AS held, sum(g.succeeded)::bigint AS succeeded,
      sum(g.skipped)::bigint AS skipped, sum(g.quarantined)::bigint AS quarantined, sum(g.cancelled)::bigint AS cancelled
    FROM unnest(translate(%(ids)s, '[]', '{}')::bigint[]) AS w(id)
    CROSS JOIN LATERAL (
      SELECT c.run_id, c.unit, c.queued, c.running, c.waiting, c.held, c.succeeded, c.skipped, c.quarantined, c.cancelled
      FROM penstock.stage_count AS c WHERE c.run_id = w.id OFFSET 0
    ) AS g
    GROUP BY g.run_id, g.unit
  ) AS u
  GROUP BY run_id
) AS r;

-- name: failures_by_kind
SELECT coalesce(json_object_agg(kind, n ORDER BY n DESC, kind), '{}')::text FROM (
  SELECT coalesce(f.kind, 'unknown') AS kind, count(*) AS n
  FROM penstock.job AS j
  LEFT JOIN LATERAL (SELECT kind FROM penstock.job_failure WHERE job_id = j.id OFFSET 0) AS f ON true
  WHERE j.run_id = %(run_id)s AND j.state = 'quarantined'
  GROUP BY 1
) AS k;

-- name: failures_by_cause
-- What is in quarantine of a run, cause by cause, each with its first job.
SELECT coalesce(json_agg(json_build_object(
  'cause', c.cause, 'jobs', c.jobs, 'job_id', c.job_id, 'kind', coalesce(f.kind, 'unknown'),
  'error', coalesce(f.error, '')) ORDER BY c.jobs DESC, c.job_id), '[]')::text
FROM (
  SELECT coalesce(e.cause, '') AS cause, count(*) AS jobs, min(j.id) AS job_id
  FROM penstock.job AS j
  LEFT JOIN LATERAL (SELECT cause FROM penstock.job_failure WHERE job_id = j.id OFFSET 0) AS e ON true
  WHERE j.run_id = %(run_id)s AND j.state = 'quarantined' AND (%(stage)s::text IS NULL OR j.stage = %(stage)s)
  GROUP BY 1 ORDER BY jobs DESC, job_id LIMIT %(limit)s
) AS c
LEFT JOIN LATERAL (SELECT kind, error FROM penstock.job_failure WHERE job_id = c.job_id OFFSET 0) AS f ON true;

-- name: runs_made_of
SELECT coalesce(json_agg(id ORDER BY id), '[]')::text
FROM (SELECT id FROM penstock.run WHERE of_run_id = %(run_id)s ORDER BY id LIMIT 50) AS r;

-- name: unaccounted_runs
-- What was enqueued is not what became of it, with what is in tallies still.
SELECT r.id
FROM penstock.run AS r
CROSS JOIN LATERAL (
  SELECT coalesce(sum(pages_added), 0) AS pages_added, coalesce(sum(candidates_added), 0) AS candidates_added,
    coalesce(sum(candidates_accepted + candidates_rejected + candidates_duplicate + candidates_passed + candidates_dropped), 0) AS fates
  FROM penstock.tally AS l
  WHERE l.run_id = r.id AND l.id > (SELECT f.floor FROM penstock.run_floor AS f WHERE f.run_id = r.id)
) AS t
CROSS JOIN LATERAL (
  SELECT coalesce(sum(c.queued + c.running + c.waiting + c.held + c.succeeded + c.skipped + c.quarantined + c.cancelled)
      FILTER (WHERE c.unit = 'page'), 0) AS pages,
    coalesce(sum(c.queued + c.running + c.waiting + c.held + c.skipped + c.quarantined + c.cancelled)
      FILTER (WHERE c.unit = 'candidate'), 0) AS candidates
  FROM penstock.stage_count AS c WHERE c.run_id = r.id
) AS g
WHERE r.is_accounted AND (
  r.pages_added + t.pages_added <> g.pages
  OR r.candidates_added + t.candidates_added - (r.candidates_accepted + r.candidates_rejected + r.candidates_duplicate
      + r.candidates_passed + r.candidates_dropped + t.fates) <> g.candidates
);
