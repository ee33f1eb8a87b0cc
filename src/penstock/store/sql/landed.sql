-- name: drop_landed
DELETE FROM penstock.landed WHERE (source_id, schedule, path) IN (
  SELECT source_id, schedule, path FROM penstock.landed WHERE gone_at < :before LIMIT :limit
);
