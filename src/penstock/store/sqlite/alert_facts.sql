-- name: watched_sources
SELECT json_group_array(json_array(
  s.id, s.key, json(iif(s.paused_at IS NULL, 'false', 'true')), coalesce(o.waiting, 0), (
    SELECT max(r.finished_at) FROM run AS r INDEXED BY run_good
    WHERE r.source_id = s.id AND r.state IN ('completed', 'partial') AND r.kind IN ('full', 'incremental')
  )))
FROM (SELECT id, key, paused_at FROM source ORDER BY id) AS s
LEFT JOIN (
  SELECT r.source_id, sum(g.queued + g.waiting) AS waiting
  FROM run AS r INDEXED BY run_active CROSS JOIN run_stage AS g ON g.run_id = r.id
  WHERE r.state IN ('queued', 'running', 'paused') GROUP BY r.source_id
) AS o ON o.source_id = s.id;

-- name: sources_with_ends
SELECT json_group_array(DISTINCT source_id) FROM run INDEXED BY run_with_jobs
WHERE finished_at IS NOT NULL AND is_emptied = 0 AND finished_at >= :since;

-- name: watched_runs
-- A share of 2^24 is all of them; see alerts/sampling.py.
SELECT json_group_array(json_array(
  r.id, r.started_at, r.finished_at, r.state, r.pipeline_version,
  (SELECT coalesce(sum(succeeded + skipped + quarantined), 0) FROM run_stage AS g WHERE g.run_id = r.id),
  (SELECT coalesce(sum(quarantined), 0) FROM run_stage AS g WHERE g.run_id = r.id), r.inserted, r.updated, r.unchanged,
  r.rejected, r.candidates_duplicate))
FROM (
  SELECT id, coalesce(started_at, created_at) AS started_at, finished_at, state, pipeline_version, inserted, updated,
    unchanged, rejected, candidates_duplicate
  FROM run INDEXED BY run_of_source
  WHERE source_id = :source_id AND kind IN ('full', 'incremental') AND finished_at IS NOT NULL AND created_at >= :since
    AND id < :before_id AND id % 16777216 * 10368889 % 16777216 < :share
  ORDER BY id DESC LIMIT :limit
) AS r;

-- name: undelivered_by_hook
-- Of each hook or route: when what was given up since then was put down; and since when a route fails without a success.
SELECT json_group_array(json_array(hook, json(given_up), failing_since, failed, error)) FROM (
  SELECT o.hook,
    json_group_array(o.created_at) FILTER (WHERE o.due_at IS NULL AND o.created_at >= :since) AS given_up,
    min(o.created_at) FILTER (WHERE o.created_at > o.accepted_at AND o.error <> '') AS failing_since,
    count(*) FILTER (WHERE o.created_at > o.accepted_at AND o.error <> '') AS failed, max(o.error) AS error
  FROM (
    SELECT u.hook, u.created_at, u.due_at, u.error, coalesce((
      SELECT max(d.created_at) FROM outbox AS d WHERE d.hook = u.hook AND d.run_id = 0 AND d.delivered_at IS NOT NULL
    ), 0) AS accepted_at
    FROM outbox AS u INDEXED BY outbox_undelivered WHERE u.delivered_at IS NULL
  ) AS o
  GROUP BY o.hook ORDER BY o.hook
);

-- name: missed_in_a_row
SELECT json_group_array(json_array(w.value ->> 0, w.value ->> 1, (
  SELECT count(*) FROM tick AS t
  WHERE t.source_id = w.value ->> 0 AND t.schedule = w.value ->> 1 AND t.due_at > coalesce((
    SELECT max(l.due_at) FROM tick AS l
    WHERE l.source_id = w.value ->> 0 AND l.schedule = w.value ->> 1 AND l.outcome <> 'missed'
  ), 0)
))) FROM json_each(:places) AS w;
