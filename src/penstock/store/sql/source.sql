-- name: source_id
SELECT id FROM penstock.source WHERE key = :key;

-- name: pause_source_if_running
UPDATE penstock.source SET paused_at = :now, pause_reason = :reason WHERE id = :id AND paused_at IS NULL;

-- name: resume_source_if_paused
UPDATE penstock.source SET paused_at = NULL, pause_reason = '' WHERE id = :id AND paused_at IS NOT NULL;
