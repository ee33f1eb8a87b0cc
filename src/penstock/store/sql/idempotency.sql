-- name: begin_idempotency_key
INSERT INTO penstock.idempotency_key (identity, key, request, server, at, lease_expires_at)
VALUES (:identity, :key, :request, :server, :now, :lease_expires_at)
ON CONFLICT (identity, key) DO NOTHING;

-- name: retake_idempotency_key
-- One that is too old to count, or whose act this server knows to have failed.
UPDATE penstock.idempotency_key
SET request = :request, server = :server, at = :now, lease_expires_at = :lease_expires_at, answer = NULL
WHERE identity = :identity AND key = :key
  AND (at < :expired OR (answer IS NULL AND server = :server AND request = :request));

-- name: idempotency_key
SELECT request, lease_expires_at, answer FROM penstock.idempotency_key WHERE identity = :identity AND key = :key;

-- name: answer_idempotency_key
UPDATE penstock.idempotency_key SET answer = :answer
WHERE identity = :identity AND key = :key AND server = :server AND answer IS NULL;

-- name: release_idempotency_key
DELETE FROM penstock.idempotency_key
WHERE identity = :identity AND key = :key AND server = :server AND answer IS NULL;

-- name: drop_idempotency_keys
DELETE FROM penstock.idempotency_key WHERE id IN (
  SELECT id FROM penstock.idempotency_key WHERE at < :before ORDER BY at LIMIT :limit
);
