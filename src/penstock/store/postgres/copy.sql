-- name: copy_mark
SELECT json_build_object('origin', origin, 'digest', digest, 'table_name', table_name, 'last_key', last_key)::text
FROM penstock.copy;

-- name: leases
-- Who works here, or schedules.
SELECT coalesce(json_agg(json_build_object('who', who, 'left_s', until - %(now)s) ORDER BY until DESC), '[]')::text
FROM (
  SELECT 'a worker on ' || host AS who, lease_expires_at AS until FROM penstock.worker WHERE lease_expires_at > %(now)s
  UNION ALL
  SELECT 'a ' || name || ' (' || holder || ')', expires_at FROM penstock.leader WHERE expires_at > %(now)s
) AS l;

-- name: last_ids
SELECT json_object_agg(name, coalesce(pg_sequence_last_value(pg_get_serial_sequence('penstock.' || name, 'id')::regclass), 0))::text
FROM unnest(%(tables)s::text[]) AS name;

-- name: raise_last_id
SELECT setval(pg_get_serial_sequence(%(table)s, 'id')::regclass, greatest(%(id)s, 1), %(id)s > 0);

-- name: identity
-- Only here: a file is known by its place on the disk.
SELECT pg_postmaster_start_time()::text || ' ' || current_database() || ' ' || 'penstock.'::text;
