-- name: next_pages
SELECT source_id, url, at FROM penstock.page
WHERE (source_id, url) > (:source_id, :url) ORDER BY source_id, url LIMIT :limit;
