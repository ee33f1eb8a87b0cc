-- name: unfinished_copy
SELECT origin FROM penstock.copy WHERE table_name <> 'done';

-- name: begin_copy
INSERT INTO penstock.copy (origin, digest, table_name, last_key, began_at)
VALUES (:origin, :digest, :table_name, :last_key, :now);

-- name: move_copy_mark
UPDATE penstock.copy SET table_name = :table_name, last_key = :last_key
WHERE table_name = :leaves_table AND last_key = :leaves_key;

-- name: has_runs
SELECT 1 FROM penstock.run LIMIT 1;
