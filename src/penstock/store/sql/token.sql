-- name: add_token
-- No row back means that a token has this name already.
INSERT INTO penstock.token (name, role, prefix, hash, created_at, actor, reason, expires_at)
VALUES (:token_name, :role, :prefix, :hash, :now, :actor, :reason, :expires_at)
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING id;

-- name: token_of_prefix
SELECT id, name, role, prefix, created_at, actor, reason, expires_at, used_at, revoked_at, hash FROM penstock.token
WHERE prefix = :prefix;

-- name: token_of_id
SELECT id, name, role, prefix, created_at, actor, reason, expires_at, used_at, revoked_at FROM penstock.token
WHERE id = :id;

-- name: token_of_name
-- The one that is not revoked, else the newest of the name.
SELECT id, name, role, prefix, created_at, actor, reason, expires_at, used_at, revoked_at FROM penstock.token
WHERE name = :token_name ORDER BY revoked_at IS NOT NULL, id DESC LIMIT 1;

-- name: tokens
SELECT id, name, role, prefix, created_at, actor, reason, expires_at, used_at, revoked_at FROM penstock.token
WHERE id < :before_id ORDER BY id DESC LIMIT :limit;

-- name: revoke_token
UPDATE penstock.token SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL;

-- name: note_token_used
-- Two servers may note it at once: the later time stays.
UPDATE penstock.token SET used_at = :at WHERE id = :id AND (used_at IS NULL OR used_at < :at);

-- name: drop_tokens
-- Those that have let nobody in for so long.
DELETE FROM penstock.token WHERE id IN (
  SELECT id FROM penstock.token WHERE revoked_at < :before OR expires_at < :before ORDER BY id LIMIT :limit
);
