-- name: source_keys
SELECT coalesce(json_agg(json_build_array(id, key)), '[]')::text
FROM penstock.source WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: lock_breakers
-- In the order of their keys, so that two hosts never wait for each other in a circle.
SELECT coalesce(json_object_agg(b.key, json_build_array(
  b.state, b.since, b.opens_at, b.opened_at, b.counts_until, b.trips, b.ramp, b.buckets::json, b.reason, b.trying,
  b.trying_until, b.in_a_row)), '{}')::text
FROM (
  SELECT key, state, since, opens_at, opened_at, counts_until, trips, ramp, buckets, reason, trying, trying_until, in_a_row
  FROM penstock.breaker WHERE key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(keys)s::jsonb)))
  ORDER BY key FOR NO KEY UPDATE
) AS b;

-- name: present_breakers
SELECT coalesce(json_agg(key), '[]')::text
FROM penstock.breaker WHERE key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(keys)s::jsonb)));

-- name: set_breakers
UPDATE penstock.breaker
SET state = b.v ->> 1, since = (b.v ->> 2)::double precision, opens_at = (b.v ->> 3)::double precision,
  opened_at = (b.v ->> 4)::double precision, counts_until = (b.v ->> 5)::double precision,
  trips = (b.v ->> 6)::bigint, ramp = (b.v ->> 7)::bigint, buckets = b.v ->> 8, reason = b.v ->> 9,
  trying = (b.v ->> 10)::bigint, trying_until = (b.v ->> 11)::double precision,
  in_a_row = (b.v ->> 12)::bigint
FROM jsonb_array_elements(%(breakers)s::jsonb) AS b(v)
WHERE breaker.key = b.v ->> 0;

-- name: breakers
SELECT coalesce(json_agg(json_build_object(
  'key', key, 'state', state, 'since', since, 'opens_at', opens_at, 'opened_at', opened_at,
  'counts_until', counts_until, 'trips', trips, 'ramp', ramp, 'buckets', buckets::json, 'reason', reason)
  ORDER BY key), '[]')::text
FROM penstock.breaker;

-- name: watched_hosts
-- Hosts whose breaker is not closed, or was told of a failure not long ago.
SELECT coalesce(json_object_agg(substr(key, 6), json_build_array(state, opens_at)), '{}')::text
FROM penstock.breaker WHERE key >= 'host:' AND key < 'host;' AND (state <> 'closed' OR counts_until > %(now)s);

-- name: set_levels
-- In the order of their ids, as everybody takes sources.
WITH l AS MATERIALIZED (
  SELECT s.id, (v ->> 1)::double precision AS level
  FROM jsonb_array_elements(%(levels)s::jsonb) AS v
  JOIN penstock.source AS s ON s.id = (v ->> 0)::bigint
  ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE penstock.source SET level = l.level FROM l WHERE source.id = l.id;

-- name: put_behind
UPDATE penstock.job SET rank = greatest(rank, %(rank)s::double precision)
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND state || '' = 'running';

-- name: excuses
SELECT coalesce(json_agg(json_build_array(id, throttles)), '[]')::text
FROM penstock.job WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: drop_idle_breakers
-- One that has been closed for long, and was told of no failure since, is as good as none.
DELETE FROM penstock.breaker WHERE key = ANY (ARRAY(
  SELECT key FROM penstock.breaker WHERE state = 'closed' AND since < %(before)s AND counts_until < %(before)s
  ORDER BY key LIMIT %(limit)s FOR UPDATE SKIP LOCKED
));
