-- name: open_requests
-- What is due, in the order in which it was asked for; also what a leader had begun when it died.
SELECT i.id, i.verb, i.source_id, s.key, i.run_id, i.params, i.actor, i.reason, i.state
FROM penstock.inbox AS i JOIN penstock.source AS s ON s.id = i.source_id
WHERE i.state IN ('open', 'taken') AND (i.due_at IS NULL OR i.due_at <= :now) AND i.id > :after_id
ORDER BY i.id LIMIT :limit;

-- name: take_request
-- No row back means that its client has taken it back.
UPDATE penstock.inbox SET state = 'taken' WHERE id = :id AND state IN ('open', 'taken');

-- name: end_request
-- What a record was to become is in the record and its versions, where it can be forgotten.
UPDATE penstock.inbox
SET state = :state, ended_at = :now, error = :error, run_id = coalesce(:run_id, run_id),
  params = CASE verb WHEN 'records.edit' THEN '{}' ELSE params END
WHERE id = :id AND state = 'taken';

-- name: requests
SELECT i.id, i.verb, i.state, s.key, i.run_id, i.at, i.due_at, i.actor, i.reason, i.ended_at, i.error
FROM penstock.inbox AS i JOIN penstock.source AS s ON s.id = i.source_id
WHERE i.id < :before_id ORDER BY i.id DESC LIMIT :limit;

-- name: sql_sources
SELECT source_id, job_type, site_url, organization_id, organization_name, domain, is_private FROM penstock.sql_source;

-- name: add_sql_source
INSERT INTO penstock.sql_source (source_id, job_type, site_url, organization_id, organization_name, domain, is_private)
VALUES (:source_id, :job_type, :site_url, :organization_id, :organization_name, :domain, :is_private)
ON CONFLICT (source_id) DO UPDATE
SET job_type = excluded.job_type, site_url = excluded.site_url, organization_id = excluded.organization_id,
  organization_name = excluded.organization_name, domain = excluded.domain, is_private = excluded.is_private;

-- name: drop_requests
DELETE FROM penstock.inbox WHERE id IN (
  SELECT id FROM penstock.inbox WHERE ended_at < :before ORDER BY ended_at LIMIT :limit
);
