-- name: onboardings
-- All of them, or that of one source.
SELECT coalesce(json_agg(json_build_object(
  'source', s.key, 'source_id', o.source_id, 'state', o.state, 'changed_at', o.changed_at, 'changed_by', o.changed_by,
  'reason', o.reason, 'keys', o.keys, 'owner', o.owner, 'proposed_at', o.proposed_at, 'proposed_by', o.proposed_by,
  'proposed_why', o.proposed_why, 'approved_at', o.approved_at, 'approved_by', o.approved_by, 'activated_at', o.activated_at,
  'activated_by', o.activated_by, 'robots_verdict', o.robots_verdict, 'robots_at', o.robots_at,
  'terms_verdict', o.terms_verdict, 'terms_at', o.terms_at, 'terms_url', o.terms_url, 'terms_hash', o.terms_hash,
  'legal_hold_at', o.legal_hold_at, 'legal_hold_by', o.legal_hold_by, 'legal_hold_reason', o.legal_hold_reason,
  'cell_state', o.cell_state, 'cell', o.cell
) ORDER BY s.key), '[]')::text
FROM penstock.onboarding AS o
JOIN penstock.source AS s ON s.id = o.source_id
WHERE %(key)s::text IS NULL OR s.key = %(key)s;

-- name: compliance_checks
SELECT coalesce(json_agg(json_build_object('id', c.id, 'subject', c.subject, 'verdict', c.verdict, 'at', c.at,
  'actor', c.actor, 'reason', c.reason, 'url', c.url, 'hash', c.hash, 'detail', c.detail) ORDER BY c.id DESC), '[]')::text
FROM (
  SELECT id, subject, verdict, at, actor, reason, url, hash, detail FROM penstock.compliance_check
  WHERE source_id = %(source_id)s ORDER BY id DESC LIMIT %(limit)s
) AS c;

-- name: trials
-- The trial runs of a source since it was proposed, the newest first.
SELECT coalesce(json_agg(t.id ORDER BY t.id DESC), '[]')::text FROM (
  SELECT id FROM penstock.run
  WHERE source_id = %(source_id)s AND kind = 'probe' AND (options::json ->> 'is_trial')::boolean
    AND created_at >= %(since)s
  ORDER BY id DESC LIMIT %(limit)s
) AS t;

-- name: take_back_running_of
-- What somebody is settling at this moment is done: waiting for it here could be waiting in a circle.
UPDATE penstock.job SET state = 'queued', is_resumed = true, worker = NULL, at = %(now)s
WHERE id = ANY (ARRAY(
  SELECT id FROM penstock.job WHERE state = 'running' AND source_id = %(source_id)s FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING id, run_id, stage, attempt;
