-- name: workers_before_schema
SELECT id FROM penstock.worker WHERE lease_expires_at > :now AND schema < :schema ORDER BY id;

-- name: drop_export_cursors
DELETE FROM penstock.export_cursor WHERE at < :before AND id < (SELECT max(id) FROM penstock.export_cursor);
