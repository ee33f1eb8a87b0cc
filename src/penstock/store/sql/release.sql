-- name: project_environment
SELECT environment FROM penstock.project;

-- name: name_environment_if_unnamed
UPDATE penstock.project SET environment = :environment WHERE id = 1 AND environment IS NULL;

-- name: set_environment
UPDATE penstock.project SET environment = :environment WHERE id = 1;

-- name: running_release
SELECT release_id FROM penstock.project;

-- name: lock_running_release
-- Written, so that on a server nobody else moves it before this transaction ends.
UPDATE penstock.project SET release_id = release_id WHERE id = 1 RETURNING release_id;

-- name: run_release
UPDATE penstock.project SET release_id = :release WHERE id = 1;

-- name: add_release
INSERT INTO penstock.release (id, manifest, created_at, actor, reason, environment)
VALUES (:id, :manifest, :created_at, :actor, :reason, :environment)
ON CONFLICT (id) DO NOTHING;

-- name: add_release_content
INSERT INTO penstock.release_content (hash, encoding, content) VALUES (:hash, :encoding, :content)
ON CONFLICT (hash) DO NOTHING;

-- name: release_content
SELECT encoding, content FROM penstock.release_content WHERE hash = :hash;

-- name: release
SELECT id, manifest, created_at, actor, reason, environment FROM penstock.release WHERE id = :id;

-- name: releases_like
-- Ids that begin with this: between it and whatever comes after all of them.
SELECT id FROM penstock.release WHERE id >= :prefix AND id < :above ORDER BY id LIMIT 2;

-- name: add_release_act
INSERT INTO penstock.release_act (verb, release_id, before_id, from_environment, at, actor, reason, approvals)
VALUES (:verb, :release, :before, :from_environment, :now, :actor, :reason, :approvals)
RETURNING id;

-- name: release_acts
SELECT id, verb, release_id, before_id, from_environment, at, actor, reason, approvals FROM penstock.release_act
WHERE id < :before_id ORDER BY id DESC LIMIT :limit;

-- name: release_acts_of
SELECT id, verb, release_id, before_id, from_environment, at, actor, reason, approvals FROM penstock.release_act
WHERE release_id = :release ORDER BY id DESC LIMIT :limit;

-- name: add_release_approval
INSERT INTO penstock.release_approval (release_id, actor, at, reason) VALUES (:release, :actor, :now, :reason)
ON CONFLICT (release_id, actor) DO NOTHING;

-- name: release_approvals
SELECT actor, at, reason FROM penstock.release_approval WHERE release_id = :release ORDER BY at, actor;

-- name: waiting_release_approvals
SELECT release_id, actor, at, reason FROM penstock.release_approval ORDER BY at DESC, actor LIMIT :limit;

-- name: spend_release_approvals
DELETE FROM penstock.release_approval WHERE release_id = :release;

-- name: site_schemas
SELECT r.key, s.key, r.data FROM penstock.record AS r JOIN penstock.source AS s ON s.id = r.source_id
WHERE r.collection = :collection AND NOT r.is_removed ORDER BY r.key;
