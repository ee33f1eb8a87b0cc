-- name: next_pages
SELECT source_id, url, at FROM penstock.page
WHERE (source_id, url) > (:source_id, :url) ORDER BY source_id, url LIMIT :limit;

-- name: pages_after
SELECT url, announced, announced_run_id, done_announced, done_hash, done_version, done_run_id, done_at, done_parts
FROM penstock.page WHERE source_id = :source_id AND url > :url ORDER BY url LIMIT :limit;
