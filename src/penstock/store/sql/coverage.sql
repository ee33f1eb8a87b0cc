-- name: uncover
-- What a run has ingested that is undone is missing again.
DELETE FROM penstock.coverage WHERE source_id = :source_id AND run_id = :run_id;
