-- name: source_keys
SELECT json_group_array(json_array(id, key)) FROM source WHERE id IN (SELECT value FROM jsonb_each(:ids));

-- name: lock_breakers
-- Nothing to lock here: a transaction that writes has the file to itself.
SELECT json_group_object(key, json_array(
  state, since, opens_at, opened_at, counts_until, trips, ramp, json(buckets), reason, trying, trying_until, in_a_row))
FROM breaker WHERE key IN (SELECT value FROM jsonb_each(:keys));

-- name: present_breakers
SELECT json_group_array(key) FROM breaker WHERE key IN (SELECT value FROM jsonb_each(:keys));

-- name: set_breakers
UPDATE breaker
SET state = b.value ->> 1, since = b.value ->> 2, opens_at = b.value ->> 3, opened_at = b.value ->> 4,
  counts_until = b.value ->> 5, trips = b.value ->> 6, ramp = b.value ->> 7, buckets = b.value ->> 8,
  reason = b.value ->> 9, trying = b.value ->> 10, trying_until = b.value ->> 11, in_a_row = b.value ->> 12
FROM jsonb_each(:breakers) AS b
WHERE breaker.key = b.value ->> 0;

-- name: breakers
SELECT json_group_array(json_object(
  'key', key, 'state', state, 'since', since, 'opens_at', opens_at, 'opened_at', opened_at,
  'counts_until', counts_until, 'trips', trips, 'ramp', ramp, 'buckets', json(buckets), 'reason', reason))
FROM (SELECT * FROM breaker ORDER BY key);

-- name: watched_hosts
-- Hosts whose breaker is not closed, or was told of a failure not long ago.
SELECT json_group_object(substr(key, 6), json_array(state, opens_at))
FROM breaker WHERE key >= 'host:' AND key < 'host;' AND (state <> 'closed' OR counts_until > :now);

-- name: set_levels
UPDATE source SET level = l.value ->> 1 FROM jsonb_each(:levels) AS l WHERE source.id = l.value ->> 0;

-- name: put_behind
UPDATE job NOT INDEXED SET rank = max(rank, :rank) WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND state = 'running';

-- name: excuses
SELECT json_group_array(json_array(id, throttles)) FROM job NOT INDEXED WHERE id IN (SELECT value FROM jsonb_each(:ids));

-- name: drop_idle_breakers
-- One that has been closed for long, and was told of no failure since, is as good as none.
DELETE FROM breaker WHERE key IN (
  SELECT key FROM breaker WHERE state = 'closed' AND since < :before AND counts_until < :before LIMIT :limit
);
