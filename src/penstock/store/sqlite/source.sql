-- name: add_sources
INSERT INTO source (key, created_at) SELECT value, :now FROM json_each(:keys) WHERE true ON CONFLICT (key) DO NOTHING;

-- name: source_ids
SELECT json_group_object(key, id) FROM source;

-- name: cool_down
UPDATE source
SET cooldown_until = max(cooldown_until, :until), cooldown_reason = :reason
WHERE id = :id;

-- name: close_host
INSERT INTO host (host, closed_until, reason) VALUES (:host, :until, :reason)
ON CONFLICT (host) DO UPDATE SET closed_until = max(closed_until, excluded.closed_until), reason = excluded.reason;

-- name: closed_hosts
SELECT json_group_object(host, closed_until) FROM host WHERE closed_until > :now;

-- name: sources
-- All of them, or the one with this key.
SELECT json_group_array(json_object(
  'id', s.id, 'key', s.key, 'paused_at', s.paused_at, 'pause_reason', s.pause_reason,
  'cooldown_until', s.cooldown_until, 'cooldown_reason', s.cooldown_reason,
  'schedule', coalesce(c.words, ''), 'next_run_at', c.next_due_at,
  'last_run_id', l.id, 'last_state', l.state, 'last_finished_at', l.finished_at,
  'queued', coalesce(o.queued, 0), 'running', coalesce(o.running, 0),
  'waiting', coalesce(o.waiting, 0), 'quarantined', coalesce(q.quarantined, 0),
  'degraded_at', h.degraded_at, 'degraded_reason', coalesce(h.degraded_reason, ''),
  'bad_runs', coalesce(h.bad_runs, 0), 'good_probes', coalesce(h.good_probes, 0)
))
FROM (SELECT * FROM source WHERE :key IS NULL OR key = :key ORDER BY key) s
LEFT JOIN run l ON l.id = (SELECT max(r.id) FROM run r WHERE r.source_id = s.id)
LEFT JOIN (
  SELECT r.source_id, sum(g.queued) AS queued, sum(g.running) AS running, sum(g.waiting) AS waiting
  FROM run r INDEXED BY run_active CROSS JOIN run_stage g ON g.run_id = r.id
  WHERE r.state IN ('queued', 'running', 'paused')
    AND (:key IS NULL OR r.source_id = (SELECT id FROM source WHERE key = :key))
  GROUP BY r.source_id
) o ON o.source_id = s.id
LEFT JOIN (
  SELECT r.source_id, count(*) AS quarantined
  FROM job e INDEXED BY job_quarantined CROSS JOIN run r ON r.id = e.run_id
  WHERE e.state = 'quarantined' AND (:key IS NULL OR e.source_id = (SELECT id FROM source WHERE key = :key))
    AND r.state NOT IN ('cancelled', 'draft') AND r.kind NOT IN ('replay', 'probe')
  GROUP BY r.source_id
) q ON q.source_id = s.id
LEFT JOIN health h ON h.source_id = s.id
LEFT JOIN (
  SELECT source_id, min(next_due_at) AS next_due_at, group_concat(words, '; ' ORDER BY name) AS words
  FROM schedule GROUP BY source_id
) c ON c.source_id = s.id;
