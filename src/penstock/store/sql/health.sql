-- name: add_health
INSERT INTO penstock.health (source_id) VALUES (:source_id) ON CONFLICT (source_id) DO NOTHING;

-- name: set_health
UPDATE penstock.health
SET bad_runs = :bad_runs, bad_run_id = :bad_run_id, good_probes = :good_probes,
  degraded_at = :degraded_at, degraded_reason = :degraded_reason
WHERE source_id = :source_id;

-- name: clear_if_degraded
UPDATE penstock.health
SET bad_runs = 0, bad_run_id = NULL, good_probes = 0, degraded_at = NULL, degraded_reason = ''
WHERE source_id = :source_id AND degraded_at IS NOT NULL;
