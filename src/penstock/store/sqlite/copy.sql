-- name: copy_mark
SELECT json_object('origin', origin, 'digest', digest, 'table_name', table_name, 'last_key', last_key) FROM copy;

-- name: forget_copy
DELETE FROM copy;

-- name: leases
-- Who works here, or schedules.
SELECT json_group_array(json_object('who', who, 'left_s', until - :now)) FROM (
  SELECT 'a worker on ' || host AS who, lease_expires_at AS until FROM worker WHERE lease_expires_at > :now
  UNION ALL
  SELECT 'a ' || name || ' (' || holder || ')', expires_at FROM leader WHERE expires_at > :now
  ORDER BY until DESC
);

-- name: last_ids
SELECT json_group_object(name, seq) FROM sqlite_sequence;

-- name: add_last_id
INSERT INTO sqlite_sequence (name, seq) VALUES (:table, 0);

-- name: raise_last_id
UPDATE sqlite_sequence SET seq = max(seq, :id) WHERE name = :table;
