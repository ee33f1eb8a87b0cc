-- name: cell_states
-- Sources of which this database says where they are; of all others it says nothing.
SELECT s.key, o.cell_state, o.cell, o.cell_token, o.changed_at
FROM penstock.onboarding AS o JOIN penstock.source AS s ON s.id = o.source_id
WHERE o.cell_state <> '' ORDER BY s.key;

-- name: cell_identity
SELECT cell, cell_number FROM penstock.project;

-- name: set_cell_if_unset
UPDATE penstock.project SET cell = :cell, cell_number = :number WHERE id = 1 AND cell = '';

-- name: move_cell_state
-- Only from the state, and within the hand-over, that it was seen in.
UPDATE penstock.onboarding SET cell_state = :enters, cell = :cell, cell_token = :token
WHERE source_id = :source_id AND cell_state = :leaves AND cell_token = :known;

-- name: running_of_source
SELECT count(*) FROM penstock.job WHERE state = 'running' AND source_id = :source_id;
