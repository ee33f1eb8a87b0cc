-- name: health
SELECT json_object('bad_runs', bad_runs, 'bad_run_id', bad_run_id, 'good_probes', good_probes,
  'degraded_at', degraded_at, 'degraded_reason', degraded_reason)
FROM health WHERE source_id = :source_id;

-- name: health_to_change
-- Nobody else changes it before the transaction ends.
SELECT json_object('bad_runs', bad_runs, 'bad_run_id', bad_run_id, 'good_probes', good_probes,
  'degraded_at', degraded_at, 'degraded_reason', degraded_reason)
FROM health WHERE source_id = :source_id;

-- name: note_probes
INSERT INTO probe (run_id, would_save, rejected, throttled, slow)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM jsonb_each(:probes) WHERE true
ON CONFLICT (run_id) DO UPDATE SET
  would_save = would_save + excluded.would_save, rejected = rejected + excluded.rejected,
  throttled = throttled + excluded.throttled, slow = slow + excluded.slow;

-- name: probe
SELECT json_object('would_save', would_save, 'rejected', rejected, 'throttled', throttled, 'slow', slow)
FROM probe WHERE run_id = :run_id;

-- name: first_error_of_run
SELECT f.error FROM job AS j INDEXED BY job_quarantined CROSS JOIN job_failure AS f ON f.job_id = j.id
WHERE j.run_id = :run_id AND j.state = 'quarantined' ORDER BY j.id LIMIT 1;
