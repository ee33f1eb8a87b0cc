-- name: drop_log_lines
-- In the order of time, as the journal is.
DELETE FROM penstock.log_line WHERE id IN (
  SELECT id FROM penstock.log_line
  WHERE id < coalesce((SELECT id FROM penstock.log_line WHERE at >= :before ORDER BY id LIMIT 1), 9223372036854775807)
  ORDER BY id LIMIT :limit
);
