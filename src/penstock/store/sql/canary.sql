-- name: add_canary
INSERT INTO penstock.canary (release_id, share, percent, salt, limits, began_at, actor, reason)
VALUES (:release, :share, :percent, :salt, :limits, :now, :actor, :reason)
RETURNING id;

-- name: add_canary_source
INSERT INTO penstock.canary_source (canary_id, source_id, is_in_share, version, plans)
VALUES (:canary_id, :source_id, :is_in_share, :version, :plans);

-- name: add_canary_run
INSERT INTO penstock.canary_run (canary_id, run_id, arm) VALUES (:canary_id, :run_id, :arm)
ON CONFLICT (canary_id, run_id) DO NOTHING;

-- name: add_canary_sample
INSERT INTO penstock.canary_sample (run_id, job_id, sample) VALUES (:run_id, :job_id, :sample);

-- name: canary_of_source
-- What performs, or will perform again, a part of this source.
SELECT c.id, c.release_id, c.share, c.percent, c.salt, c.state, s.version, s.plans
FROM penstock.canary_source AS s JOIN penstock.canary AS c ON c.id = s.canary_id
WHERE s.source_id = :source_id
  AND (c.state = 'full' OR s.is_in_share AND c.state IN ('active', 'passed', 'stopping'))
ORDER BY c.id DESC LIMIT 1;

-- name: start_terms
-- Where a source stands in its onboarding, or that it is in another cell; and the canary that has a part of what starts
-- now, if there are such.
SELECT CASE
    WHEN (SELECT o.cell_state IN ('leaving', 'left', 'arriving') FROM penstock.onboarding AS o WHERE o.source_id = source.id)
      OR EXISTS (SELECT 1 FROM penstock.project WHERE project.cell_number > 0) AND NOT EXISTS (
        SELECT 1 FROM penstock.onboarding AS o WHERE o.source_id = source.id AND o.cell_state = 'here')
    THEN 'elsewhere'
    ELSE (SELECT o.state FROM penstock.onboarding AS o WHERE o.source_id = source.id)
  END,
  c.id, c.release_id, c.share, c.percent, c.salt, c.state, s.version, s.plans
FROM penstock.source
LEFT JOIN (penstock.canary_source AS s JOIN penstock.canary AS c ON c.id = s.canary_id)
  ON s.source_id = source.id AND (c.state = 'full' OR s.is_in_share AND c.state IN ('active', 'passed'))
WHERE source.id = :source_id
ORDER BY c.id DESC LIMIT 1;

-- name: canary
SELECT id, release_id, share, percent, salt, state, limits, looks, look, began_at, ended_at, actor, reason, end_reason
FROM penstock.canary WHERE id = :id;

-- name: canaries
SELECT id, release_id, share, percent, salt, state, limits, looks, look, began_at, ended_at, actor, reason, end_reason
FROM penstock.canary WHERE id < :before_id ORDER BY id DESC LIMIT :limit;

-- name: open_canaries
SELECT id, release_id, share, percent, salt, state, limits, looks, look, began_at, ended_at, actor, reason, end_reason
FROM penstock.canary WHERE state IN ('active', 'passed', 'full', 'stopping') ORDER BY id;

-- name: canary_sources
SELECT s.source_id, source.key, s.is_in_share, s.version
FROM penstock.canary_source AS s JOIN penstock.source ON source.id = s.source_id
WHERE s.canary_id = :canary_id ORDER BY source.key;

-- name: canary_runs
SELECT run_id, arm FROM penstock.canary_run WHERE canary_id = :canary_id ORDER BY run_id;

-- name: canary_samples
SELECT job_id, sample FROM penstock.canary_sample WHERE run_id = :run_id ORDER BY id;

-- name: note_canary_look
-- No row back means that another leader has taken this look.
UPDATE penstock.canary SET looks = :look_number, look = :look WHERE id = :id AND looks = :look_number - 1 AND state = 'active'
RETURNING id;

-- name: move_canary_if
UPDATE penstock.canary SET state = :state, end_reason = :reason, ended_at = :ended_at WHERE id = :id AND state = :before
RETURNING release_id;

-- name: staged_removals
SELECT count(*) FROM penstock.staged WHERE run_id = :run_id AND merge = 'remove';

-- name: alerts_of_canary
-- What has opened on its sources since it began.
SELECT a.id, a.rule, a.severity, source.key FROM penstock.alert AS a
JOIN penstock.canary_source AS s ON s.source_id = a.source_id AND s.canary_id = :canary_id
JOIN penstock.source ON source.id = a.source_id
WHERE a.opened_at >= :since AND a.state <> 'resolved' AND (s.is_in_share OR :is_full)
ORDER BY a.id;

-- name: drop_canary_samples
DELETE FROM penstock.canary_sample WHERE run_id = :run_id;

-- name: forget_canary_samples
DELETE FROM penstock.canary_sample WHERE job_id = :id;
