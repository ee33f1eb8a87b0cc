-- name: health
SELECT json_build_object('bad_runs', bad_runs, 'bad_run_id', bad_run_id, 'good_probes', good_probes,
  'degraded_at', degraded_at, 'degraded_reason', degraded_reason)::text
FROM penstock.health WHERE source_id = %(source_id)s;

-- name: health_to_change
-- Nobody else changes it before the transaction ends.
SELECT json_build_object('bad_runs', bad_runs, 'bad_run_id', bad_run_id, 'good_probes', good_probes,
  'degraded_at', degraded_at, 'degraded_reason', degraded_reason)::text
FROM penstock.health WHERE source_id = %(source_id)s FOR NO KEY UPDATE;

-- name: note_probes
INSERT INTO penstock.probe (run_id, would_save, rejected, throttled, slow)
SELECT (p ->> 0)::bigint, (p ->> 1)::bigint, (p ->> 2)::bigint, (p ->> 3)::bigint, (p ->> 4)::bigint
FROM jsonb_array_elements(%(probes)s::jsonb) AS p
ORDER BY (p ->> 0)::bigint
ON CONFLICT (run_id) DO UPDATE SET
  would_save = probe.would_save + excluded.would_save, rejected = probe.rejected + excluded.rejected,
  throttled = probe.throttled + excluded.throttled, slow = probe.slow + excluded.slow;

-- name: probe
SELECT json_build_object('would_save', would_save, 'rejected', rejected, 'throttled', throttled, 'slow', slow)::text
FROM penstock.probe WHERE run_id = %(run_id)s;

-- name: first_error_of_run
SELECT f.error
FROM (SELECT id FROM penstock.job WHERE run_id = %(run_id)s AND state = 'quarantined' OFFSET 0) AS j
CROSS JOIN LATERAL (SELECT error FROM penstock.job_failure WHERE job_id = j.id OFFSET 0) AS f
ORDER BY j.id LIMIT 1;
