-- name: add_sources
-- In the order in which they are given, so that two who add the same never wait for each other in a circle.
INSERT INTO penstock.source (key, created_at)
SELECT k.key, %(now)s FROM jsonb_array_elements_text(%(keys)s::jsonb) WITH ORDINALITY AS k(key, place) ORDER BY k.place
ON CONFLICT (key) DO NOTHING;

-- name: source_ids
SELECT coalesce(json_object_agg(key, id), '{}')::text FROM penstock.source;

-- name: cool_down
UPDATE penstock.source
SET cooldown_until = greatest(cooldown_until, %(until)s), cooldown_reason = %(reason)s
WHERE id = %(id)s;

-- name: close_host
INSERT INTO penstock.host (host, closed_until, reason) VALUES (%(host)s, %(until)s, %(reason)s)
ON CONFLICT (host) DO UPDATE SET closed_until = greatest(host.closed_until, excluded.closed_until), reason = excluded.reason;

-- name: closed_hosts
SELECT coalesce(json_object_agg(host, closed_until), '{}')::text FROM penstock.host WHERE closed_until > %(now)s;

-- name: sources
-- All of them, or the one with this key.
SELECT coalesce(json_agg(json_build_object(
  'id', s.id, 'key', s.key, 'paused_at', s.paused_at, 'pause_reason', s.pause_reason,
  'cooldown_until', s.cooldown_until, 'cooldown_reason', s.cooldown_reason,
  'schedule', coalesce(c.words, ''), 'next_run_at', c.next_due_at,
  'last_run_id', l.id, 'last_state', l.state, 'last_finished_at', l.finished_at,
  'queued', coalesce(o.queued, 0), 'running', coalesce(o.running, 0),
  'waiting', coalesce(o.waiting, 0), 'quarantined', coalesce(q.quarantined, 0),
  'degraded_at', h.degraded_at, 'degraded_reason', coalesce(h.degraded_reason, ''),
  'bad_runs', coalesce(h.bad_runs, 0), 'good_probes', coalesce(h.good_probes, 0)
) ORDER BY s.key), '[]')::text
FROM penstock.source AS s
LEFT JOIN LATERAL (
  SELECT id, state, finished_at FROM penstock.run
  WHERE source_id >= s.id AND source_id <= s.id ORDER BY source_id DESC, id DESC LIMIT 1
) AS l ON true
LEFT JOIN LATERAL (
  SELECT sum(g.queued)::bigint AS queued, sum(g.running)::bigint AS running, sum(g.waiting)::bigint AS waiting
  FROM (SELECT id FROM penstock.run WHERE source_id = s.id AND state IN ('queued', 'running', 'paused') OFFSET 0) AS r
  CROSS JOIN LATERAL (SELECT queued, running, waiting FROM penstock.stage_count WHERE run_id = r.id OFFSET 0) AS g
) AS o ON true
LEFT JOIN (
  SELECT r.source_id, sum(e.jobs)::bigint AS quarantined
  FROM (
    SELECT run_id, count(*) AS jobs FROM penstock.job
    WHERE state = 'quarantined'
      AND (%(key)s::text IS NULL OR source_id = (SELECT id FROM penstock.source WHERE key = %(key)s))
    GROUP BY run_id
  ) AS e
  CROSS JOIN LATERAL (
    SELECT source_id FROM penstock.run
    WHERE id = e.run_id AND state NOT IN ('cancelled', 'draft') AND kind NOT IN ('replay', 'probe') OFFSET 0
  ) AS r
  GROUP BY r.source_id
) AS q ON q.source_id = s.id
LEFT JOIN penstock.health AS h ON h.source_id = s.id
LEFT JOIN (
  SELECT source_id, min(next_due_at) AS next_due_at, string_agg(words, '; ' ORDER BY name) AS words
  FROM penstock.schedule GROUP BY source_id
) AS c ON c.source_id = s.id
WHERE %(key)s::text IS NULL OR s.key = %(key)s;
