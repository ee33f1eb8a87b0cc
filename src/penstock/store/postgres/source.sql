-- name: add_source
INSERT INTO penstock.source (key, created_at) VALUES (%(key)s, %(now)s) ON CONFLICT (key) DO NOTHING;

-- name: source_ids
SELECT coalesce(json_object_agg(key, id), '{}')::text FROM penstock.source;

-- name: pause_source_if_running
UPDATE penstock.source SET paused_at = %(now)s, pause_reason = %(reason)s WHERE id = %(id)s AND paused_at IS NULL;

-- name: resume_source_if_paused
UPDATE penstock.source SET paused_at = NULL, pause_reason = '' WHERE id = %(id)s AND paused_at IS NOT NULL;

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
SELECT coalesce(json_agg(json_build_object(
  'id', s.id, 'key', s.key, 'paused_at', s.paused_at, 'pause_reason', s.pause_reason,
  'cooldown_until', s.cooldown_until, 'cooldown_reason', s.cooldown_reason,
  'schedule', coalesce(c.words, ''), 'next_run_at', c.next_due_at,
  'runs', (SELECT count(*) FROM penstock.run AS r WHERE r.source_id = s.id),
  'last_run_id', l.id, 'last_state', l.state, 'last_finished_at', l.finished_at,
  'queued', coalesce(o.queued, 0), 'running', coalesce(o.running, 0),
  'waiting', coalesce(o.waiting, 0), 'quarantined', coalesce(o.quarantined, 0),
  'degraded_at', h.degraded_at, 'degraded_reason', coalesce(h.degraded_reason, ''),
  'bad_runs', coalesce(h.bad_runs, 0), 'good_probes', coalesce(h.good_probes, 0)
) ORDER BY s.key), '[]')::text
FROM penstock.source AS s
LEFT JOIN penstock.run AS l ON l.id = (SELECT max(r.id) FROM penstock.run AS r WHERE r.source_id = s.id)
LEFT JOIN (
  SELECT r.source_id, sum(g.queued)::bigint AS queued, sum(g.running)::bigint AS running,
    sum(g.waiting)::bigint AS waiting, sum(CASE WHEN r.kind IN ('replay', 'probe') THEN 0 ELSE g.quarantined END)::bigint AS quarantined
  FROM penstock.run AS r JOIN penstock.stage_count AS g ON g.run_id = r.id
  WHERE r.state IN ('queued', 'running', 'paused', 'partial', 'failed')
  GROUP BY r.source_id
) AS o ON o.source_id = s.id
LEFT JOIN penstock.health AS h ON h.source_id = s.id
LEFT JOIN (
  SELECT source_id, min(next_due_at) AS next_due_at, string_agg(words, '; ' ORDER BY name) AS words
  FROM penstock.schedule GROUP BY source_id
) AS c ON c.source_id = s.id;
