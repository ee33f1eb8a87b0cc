-- name: last_fielded_run
SELECT max(run_id) FROM penstock.run_field WHERE source_id = :source_id AND run_id < :run_id;

-- name: drop_run_fields
DELETE FROM penstock.run_field WHERE source_id = :source_id AND run_id < :run_id;
