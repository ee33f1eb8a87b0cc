-- name: announcements
SELECT at FROM penstock.announcement WHERE source_id = :source_id ORDER BY at;

-- name: open_announcements
SELECT source_id, at FROM penstock.announcement WHERE is_open ORDER BY source_id, at LIMIT :limit;

-- name: drop_announcements
DELETE FROM penstock.announcement WHERE (source_id, at) IN (
  SELECT source_id, at FROM penstock.announcement WHERE at < :before ORDER BY at LIMIT :limit
);
