-- name: watched_sources
SELECT coalesce(json_agg(json_build_array(
  s.id, s.key, s.paused_at IS NOT NULL, coalesce(o.waiting, 0), (
    SELECT max(r.finished_at) FROM penstock.run AS r
    WHERE r.source_id = s.id AND r.state IN ('completed', 'partial') AND r.kind IN ('full', 'incremental')
  )) ORDER BY s.id), '[]')::text
FROM penstock.source AS s
LEFT JOIN (
  SELECT r.source_id, sum(g.queued + g.waiting)::bigint AS waiting
  FROM penstock.run AS r CROSS JOIN LATERAL (
    SELECT queued, waiting FROM penstock.stage_count AS c WHERE c.run_id = r.id
  ) AS g
  WHERE r.state IN ('queued', 'running', 'paused') GROUP BY r.source_id
) AS o ON o.source_id = s.id;

-- name: sources_with_ends
SELECT coalesce(json_agg(DISTINCT source_id), '[]')::text FROM penstock.run
WHERE finished_at IS NOT NULL AND NOT is_emptied AND finished_at >= %(since)s;

-- name: watched_runs
-- By two bounds and not by one value, which would let the planner walk through the runs of all sources instead.
-- A share of 2^24 is all of them; see alerts/sampling.py.
SELECT coalesce(json_agg(json_build_array(
  r.id, r.started_at, r.finished_at, r.state, r.pipeline_version, coalesce(g.ended, 0), coalesce(g.failed, 0),
  r.inserted + t.inserted, r.updated + t.updated, r.unchanged + t.unchanged, r.rejected + t.rejected,
  r.candidates_duplicate + t.duplicates
) ORDER BY r.id DESC), '[]')::text
FROM (
  SELECT id, coalesce(started_at, created_at) AS started_at, finished_at, state, pipeline_version, inserted, updated,
    unchanged, rejected, candidates_duplicate
  FROM penstock.run
  WHERE source_id >= %(source_id)s AND source_id <= %(source_id)s AND kind IN ('full', 'incremental')
    AND finished_at IS NOT NULL AND created_at >= %(since)s
    AND id < %(before_id)s AND id %% 16777216 * 10368889 %% 16777216 < %(share)s
  ORDER BY source_id DESC, id DESC LIMIT %(limit)s
) AS r
CROSS JOIN LATERAL (
  SELECT coalesce(sum(inserted), 0)::bigint AS inserted, coalesce(sum(updated), 0)::bigint AS updated,
    coalesce(sum(unchanged), 0)::bigint AS unchanged, coalesce(sum(rejected), 0)::bigint AS rejected,
    coalesce(sum(candidates_duplicate), 0)::bigint AS duplicates
  FROM penstock.tally AS l
  WHERE l.run_id = r.id AND l.id > (SELECT f.floor FROM penstock.run_floor AS f WHERE f.run_id = r.id)
) AS t
CROSS JOIN LATERAL (
  SELECT sum(succeeded + skipped + quarantined)::bigint AS ended, sum(quarantined)::bigint AS failed
  FROM penstock.stage_count AS c WHERE c.run_id = r.id
) AS g;

-- name: undelivered_by_hook
-- Of each hook or route: when what was given up since then was put down; and since when a route fails without a success.
SELECT coalesce(json_agg(json_build_array(hook, given_up, failing_since, failed, error) ORDER BY hook), '[]')::text FROM (
  SELECT o.hook,
    coalesce(json_agg(o.created_at) FILTER (WHERE o.due_at IS NULL AND o.created_at >= %(since)s), '[]') AS given_up,
    min(o.created_at) FILTER (WHERE o.created_at > o.accepted_at AND o.error <> '') AS failing_since,
    count(*) FILTER (WHERE o.created_at > o.accepted_at AND o.error <> '') AS failed, max(o.error) AS error
  FROM (
    SELECT u.hook, u.created_at, u.due_at, u.error, coalesce((
      SELECT max(d.created_at) FROM penstock.outbox AS d
      WHERE d.hook = u.hook AND d.run_id = 0 AND d.delivered_at IS NOT NULL
    ), 0) AS accepted_at
    FROM penstock.outbox AS u WHERE u.delivered_at IS NULL
  ) AS o
  GROUP BY o.hook
) AS found;

-- name: missed_in_a_row
SELECT coalesce(json_agg(json_build_array((w ->> 0)::bigint, w ->> 1, (
  SELECT count(*) FROM penstock.tick AS t
  WHERE t.source_id = (w ->> 0)::bigint AND t.schedule = w ->> 1 AND t.due_at > coalesce((
    SELECT max(l.due_at) FROM penstock.tick AS l
    WHERE l.source_id = (w ->> 0)::bigint AND l.schedule = w ->> 1 AND l.outcome <> 'missed'
  ), 0)
))), '[]')::text FROM jsonb_array_elements(%(places)s::jsonb) AS w;
