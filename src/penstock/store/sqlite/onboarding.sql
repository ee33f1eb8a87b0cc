-- name: onboardings
-- All of them, or that of one source.
SELECT json_group_array(json_object(
  'source', s.key, 'source_id', o.source_id, 'state', o.state, 'changed_at', o.changed_at, 'changed_by', o.changed_by,
  'reason', o.reason, 'keys', o.keys, 'owner', o.owner, 'proposed_at', o.proposed_at, 'proposed_by', o.proposed_by,
  'proposed_why', o.proposed_why, 'approved_at', o.approved_at, 'approved_by', o.approved_by, 'activated_at', o.activated_at,
  'activated_by', o.activated_by, 'robots_verdict', o.robots_verdict, 'robots_at', o.robots_at,
  'terms_verdict', o.terms_verdict, 'terms_at', o.terms_at, 'terms_url', o.terms_url, 'terms_hash', o.terms_hash,
  'legal_hold_at', o.legal_hold_at, 'legal_hold_by', o.legal_hold_by, 'legal_hold_reason', o.legal_hold_reason,
  'cell_state', o.cell_state, 'cell', o.cell))
FROM (SELECT * FROM source WHERE :key IS NULL OR key = :key ORDER BY key) AS s
CROSS JOIN onboarding AS o ON o.source_id = s.id;

-- name: compliance_checks
SELECT json_group_array(json_object('id', id, 'subject', subject, 'verdict', verdict, 'at', at, 'actor', actor,
  'reason', reason, 'url', url, 'hash', hash, 'detail', detail))
FROM (SELECT * FROM compliance_check WHERE source_id = :source_id ORDER BY id DESC LIMIT :limit);

-- name: trials
-- The trial runs of a source since it was proposed, the newest first.
SELECT json_group_array(id) FROM (
  SELECT id FROM run
  WHERE source_id = :source_id AND kind = 'probe' AND options ->> 'is_trial' AND created_at >= :since
  ORDER BY id DESC LIMIT :limit
);

-- name: take_back_running_of
UPDATE job INDEXED BY job_running SET state = 'queued', is_resumed = 1, worker = NULL, at = :now
WHERE state = 'running' AND source_id = :source_id
RETURNING id, run_id, stage, attempt;
