-- name: known_signal
SELECT id FROM penstock.signal WHERE name = :signal AND key = :key;
