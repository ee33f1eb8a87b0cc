-- name: journal_last_id
SELECT coalesce(max(id), 0) FROM penstock.event;

-- name: unsealed_events
SELECT count(*) FROM (
  SELECT 1 FROM penstock.event WHERE id > (SELECT coalesce(max(last_id), 0) FROM penstock.seal) LIMIT :most
) AS u;

-- name: seals
SELECT number, last_id, events, gone_through, newest_at, at, digest, hash, fingerprints, pruned_at
FROM penstock.seal WHERE number > :after ORDER BY number LIMIT :limit;

-- name: last_seal
SELECT number, last_id, events, gone_through, newest_at, at, digest, hash, fingerprints, pruned_at
FROM penstock.seal ORDER BY number DESC LIMIT 1;

-- name: kept_seals
-- The first seals whose rows are there.
SELECT number, last_id, events, newest_at FROM penstock.seal WHERE pruned_at IS NULL ORDER BY number LIMIT :limit;

-- name: add_seal_if_next
-- No row if somebody else has sealed since, or has erased what was read: the caller drops it and looks again.
INSERT INTO penstock.seal (number, last_id, events, gone_through, newest_at, at, digest, hash, fingerprints)
SELECT :number, :last_id, :events, :gone_through, :newest_at, :at, :digest, :hash, :fingerprints
WHERE (SELECT coalesce(max(number), 0) FROM penstock.seal) = :number - 1
  AND (SELECT coalesce(max(act_id), 0) FROM penstock.erasure) = :erasure
ON CONFLICT (number) DO NOTHING;

-- name: last_erasure
SELECT coalesce(max(act_id), 0) FROM penstock.erasure;

-- name: drop_sealed_events
DELETE FROM penstock.event WHERE id > :after_id AND id <= :last_id;

-- name: note_pruned
UPDATE penstock.seal SET pruned_at = :now, fingerprints = '' WHERE number >= :first AND number <= :last;

-- name: drop_tombstones
-- The event that tells of an erasure stands behind every row that was erased.
DELETE FROM penstock.tombstone WHERE act_id <= :last_id;

-- name: last_id_before_seal
SELECT coalesce(max(last_id), 0) FROM penstock.seal WHERE number < :number;

-- name: tombstones
SELECT event_id, act_id, sealed, erased FROM penstock.tombstone ORDER BY event_id;
