-- name: onboarding_state_of
SELECT state FROM penstock.onboarding WHERE source_id = :source_id;

-- name: begin_onboarding
-- Of a source that nobody has proposed, as it stands: the next statement moves it.
INSERT INTO penstock.onboarding (source_id, state, changed_at, changed_by, proposed_at, proposed_by)
VALUES (:source_id, :state, :now, :actor, :proposed_at, :proposed_by) ON CONFLICT (source_id) DO NOTHING;

-- name: propose_if_in
-- The checks of its former life say nothing about this one.
UPDATE penstock.onboarding
SET state = 'proposed', changed_at = :now, changed_by = :actor, reason = :reason, keys = :keys, owner = :owner,
  proposed_at = :now, proposed_by = :actor, proposed_why = :reason, approved_at = NULL, approved_by = '',
  activated_at = NULL, activated_by = '', robots_verdict = '', robots_at = NULL, terms_verdict = '', terms_at = NULL,
  terms_url = '', terms_hash = ''
WHERE source_id = :source_id AND state = :leaves;

-- name: approve_if_in
UPDATE penstock.onboarding
SET state = 'trial', changed_at = :now, changed_by = :actor, reason = :reason, approved_at = :now, approved_by = :actor
WHERE source_id = :source_id AND state = :leaves;

-- name: activate_if_in
UPDATE penstock.onboarding
SET state = 'active', changed_at = :now, changed_by = :actor, reason = :reason, activated_at = :now, activated_by = :actor
WHERE source_id = :source_id AND state = :leaves;

-- name: retire_if_in
UPDATE penstock.onboarding
SET state = 'retired', changed_at = :now, changed_by = :actor, reason = :reason
WHERE source_id = :source_id AND state = :leaves;

-- name: propose_source
-- What a pipeline discovered: only where nobody knows the source yet.
INSERT INTO penstock.onboarding
  (source_id, state, changed_at, changed_by, reason, keys, proposed_at, proposed_by, proposed_why)
VALUES (:source_id, 'proposed', :now, :actor, :reason, :keys, :now, :actor, :reason) ON CONFLICT (source_id) DO NOTHING;

-- name: set_owner
UPDATE penstock.onboarding SET owner = :owner WHERE source_id = :source_id AND owner <> :owner;

-- name: set_robots
UPDATE penstock.onboarding SET robots_verdict = :verdict, robots_at = :now WHERE source_id = :source_id;

-- name: set_terms
UPDATE penstock.onboarding
SET terms_verdict = :verdict, terms_at = :now, terms_url = :url, terms_hash = :hash WHERE source_id = :source_id;

-- name: remember_terms
-- Where nothing was accepted yet: what is to be accepted.
UPDATE penstock.onboarding SET terms_url = :url WHERE source_id = :source_id AND terms_verdict = '';

-- name: add_compliance_check
INSERT INTO penstock.compliance_check (source_id, subject, verdict, at, actor, reason, url, hash, detail)
VALUES (:source_id, :subject, :verdict, :now, :actor, :reason, :url, :hash, :detail);

-- name: keep_compliance_text
INSERT INTO penstock.compliance_text (hash, content) VALUES (:hash, :content) ON CONFLICT (hash) DO NOTHING;

-- name: compliance_text
SELECT content FROM penstock.compliance_text WHERE hash = :hash;

-- name: hold_legally_if_open
UPDATE penstock.onboarding SET legal_hold_at = :now, legal_hold_by = :actor, legal_hold_reason = :reason
WHERE source_id = :source_id AND legal_hold_at IS NULL;

-- name: release_legally_if_held
UPDATE penstock.onboarding SET legal_hold_at = NULL, legal_hold_by = '', legal_hold_reason = ''
WHERE source_id = :source_id AND legal_hold_at IS NOT NULL;

-- name: unended_runs_of
SELECT id FROM penstock.run
WHERE source_id = :source_id AND state IN ('draft', 'queued', 'running', 'paused') ORDER BY id;
