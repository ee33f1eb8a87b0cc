-- name: staged_same
SELECT count(*) FROM penstock.staged WHERE run_id = :run_id AND data IS NULL AND merge <> 'remove';

-- name: has_staged
SELECT EXISTS (SELECT 1 FROM penstock.staged WHERE run_id = :run_id);

-- name: set_replay_state
INSERT INTO penstock.replay (run_id, state, sealed, at) VALUES (:run_id, :state, :sealed, :now)
ON CONFLICT (run_id) DO UPDATE SET state = excluded.state, sealed = excluded.sealed, at = excluded.at;

-- name: count_committed
UPDATE penstock.replay
SET added = added + :added, changed = changed + :changed, removed = removed + :removed, at = :now
WHERE run_id = :run_id;

-- name: staged_quality
SELECT avg(score) FROM penstock.staged WHERE run_id = :run_id;
